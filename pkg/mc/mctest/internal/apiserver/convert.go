// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/resource"
)

// coreEventFields are the fields of an Event that have other names in
// events.k8s.io.
var coreEventFields = map[string]string{
	"involvedObject":     "regarding",
	"message":            "note",
	"source":             "deprecatedSource",
	"firstTimestamp":     "deprecatedFirstTimestamp",
	"lastTimestamp":      "deprecatedLastTimestamp",
	"count":              "deprecatedCount",
	"reportingComponent": "reportingController",
}

// convert converts an object to the version of a resource. Versions of a kind
// differ only in their name, except those of Event.
func convert(object *unstructured.Unstructured, res *resource.Resource) {
	version := res.GroupVersion().String()
	from := object.GetAPIVersion()
	if from == version {
		return
	}
	object.SetAPIVersion(version)
	if res.Kind != "Event" || res.Custom {
		return
	}
	for core, renamed := range coreEventFields {
		source, target := core, renamed
		if version == "v1" {
			source, target = renamed, core
		}
		if value, ok := object.Object[source]; ok {
			object.Object[target] = value
			delete(object.Object, source)
		}
	}
}
