// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"bytes"
	"encoding/json"

	"k8s.io/client-go/util/cert"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	v1      = "client.authentication.k8s.io/v1"
	v1beta1 = "client.authentication.k8s.io/v1beta1"

	// largeRequest is the length in bytes of a request that still fits into the
	// 128 KiB that Linux allows for a variable.
	largeRequest = 100 << 10
)

// requestFor returns a request for the cluster, as clients write it.
func requestFor(apiVersion string, cluster *plugin.Cluster) string {
	spec := map[string]any{"interactive": false}
	if cluster != nil {
		spec["cluster"] = cluster
	}
	return encode(map[string]any{"kind": "ExecCredential", "apiVersion": apiVersion, "spec": spec})
}

func encode(request map[string]any) string {
	text, _ := json.Marshal(request) // Run checks that the cluster can be encoded
	return string(text)
}

// withUnknownFields adds fields to the request that no version has.
func withUnknownFields(request string) string {
	var object map[string]any
	_ = json.Unmarshal([]byte(request), &object) // a result of requestFor
	object["metadata"] = map[string]any{"creationTimestamp": nil}
	if spec, ok := object["spec"].(map[string]any); ok {
		spec["fieldOfALaterVersion"] = map[string]any{"a": 1}
		if cluster, ok := spec["cluster"].(map[string]any); ok {
			cluster["field-of-a-later-version"] = []string{"a"}
		}
	}
	return encode(object)
}

// largeRequestFor repeats the cluster's certificates until the request is large.
func largeRequestFor(cluster plugin.Cluster) (string, error) {
	if len(cluster.CAData) == 0 {
		certificate, _, err := cert.GenerateSelfSignedCertKey("plugintest.invalid", nil, nil)
		if err != nil {
			return "", err
		}
		cluster.CAData = certificate
	}
	one := append(bytes.TrimSpace(cluster.CAData), '\n')
	room := largeRequest - len(cluster.Config) - len(cluster.Server)
	cluster.CAData = bytes.Repeat(one, max(1, room*3/4/len(one)))
	return requestFor(v1, &cluster), nil
}
