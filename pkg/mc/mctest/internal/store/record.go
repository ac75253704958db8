// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// A Record is one object at one revision. It is immutable.
type Record struct {
	Namespace string
	Name      string
	// APIVersion is the one in JSON.
	APIVersion string
	Revision   uint64
	Labels     labels.Set
	// JSON is the whole object, including its resource version.
	JSON []byte

	key string
}

// Key orders the records of a resource as an API server lists them.
func (r *Record) Key() string { return r.key }

// Key returns the key of an object among those of its resource.
func Key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// placeholder is the resource version of an object that has none yet. It is
// random, so that no object contains it by accident.
var placeholder = hex.EncodeToString([]byte(uuid.NewUUID()))

// A Draft is an object without a resource version, which the write sets.
type Draft struct {
	record     Record
	head, tail []byte
}

// NewDraft encodes an object. It ignores the object's resource version, and does
// not change the object.
func NewDraft(namespace, name string, set labels.Set, object map[string]any) (*Draft, error) {
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("object has no metadata")
	}
	version, had := meta["resourceVersion"]
	meta["resourceVersion"] = placeholder
	raw, err := json.Marshal(object)
	if had {
		meta["resourceVersion"] = version
	} else {
		delete(meta, "resourceVersion")
	}
	if err != nil {
		return nil, err
	}
	head, tail, ok := bytes.Cut(raw, []byte(placeholder))
	if !ok {
		return nil, errors.New("encoded object has no resource version")
	}
	apiVersion, _ := object["apiVersion"].(string)
	return &Draft{
		record: Record{
			Namespace:  namespace,
			Name:       name,
			APIVersion: apiVersion,
			Labels:     set,
			key:        Key(namespace, name),
		},
		head: head,
		tail: tail,
	}, nil
}

// Preview returns the record that a write of the draft at a revision would store.
func (d *Draft) Preview(revision uint64) *Record {
	r := d.record
	r.Revision = revision
	r.JSON = make([]byte, 0, len(d.head)+len(d.tail)+20)
	r.JSON = append(r.JSON, d.head...)
	r.JSON = strconv.AppendUint(r.JSON, revision, 10)
	r.JSON = append(r.JSON, d.tail...)
	return &r
}
