// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Kubeconfig is a parsed kubeconfig. It does not change. Printing one shows no secret.
type Kubeconfig struct {
	origin   string
	dir      string // from which relative paths start, or ""
	current  string
	clusters map[string]*entry[clientcmdv1.Cluster]
	users    map[string]*entry[clientcmdv1.AuthInfo]
	contexts map[string]*entry[clientcmdv1.Context]
}

// entry is a cluster, a user or a context.
type entry[T any] struct {
	value T
	field string // that is invalid, or ""
	err   error  // nil if the value is valid
}

// Parse parses a kubeconfig in YAML or JSON. The origin is where it is from, such as
// "Secret clusters/eu" or "file /home/me/.kube/config", for errors. Relative paths in it
// start at the folder, as with kubectl, and are not allowed if that is "". An entry that
// is invalid is no error: Context returns it.
func Parse(origin, dir string, data []byte) (*Kubeconfig, error) {
	fail := func(field, text string) (*Kubeconfig, error) {
		return nil, &Error{Origin: origin, Field: field, Err: invalid(text)}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return fail("", "is empty")
	}
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return fail("", "is not valid YAML"+lineOf(err))
	}
	var file struct {
		Kind           string            `json:"kind"`
		APIVersion     string            `json:"apiVersion"`
		Clusters       []json.RawMessage `json:"clusters"`
		Users          []json.RawMessage `json:"users"`
		Contexts       []json.RawMessage `json:"contexts"`
		CurrentContext string            `json:"current-context"`
	}
	if field, err := decode(asJSON, &file); err != nil {
		return fail(field, err.Error())
	}
	switch {
	case file.Kind != "" && file.Kind != "Config":
		return fail("kind", `must be "Config"`)
	case file.APIVersion != "" && file.APIVersion != "v1":
		return fail("apiVersion", `must be "v1"`)
	}
	k := &Kubeconfig{origin: origin, dir: dir, current: file.CurrentContext}
	if k.clusters, err = decodeEntries[clientcmdv1.Cluster](file.Clusters, "cluster"); err != nil {
		return fail("clusters", err.Error())
	}
	if k.users, err = decodeEntries[clientcmdv1.AuthInfo](file.Users, "user"); err != nil {
		return fail("users", err.Error())
	}
	if k.contexts, err = decodeEntries[clientcmdv1.Context](file.Contexts, "context"); err != nil {
		return fail("contexts", err.Error())
	}
	return k, nil
}

// Contexts returns the names of the contexts, sorted.
func (k *Kubeconfig) Contexts() []string { return slices.Sorted(maps.Keys(k.contexts)) }

// String returns where the kubeconfig is from.
func (k *Kubeconfig) String() string { return "kubeconfig of " + k.origin }

// Format implements fmt.Formatter: every verb prints what String returns.
func (k *Kubeconfig) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, k.String()) }

var line = regexp.MustCompile(`\bline \d+`)

// lineOf returns the line of an error of the YAML parser, whose text may quote secrets.
func lineOf(err error) string {
	if found := line.FindString(err.Error()); found != "" {
		return ": see " + found
	}
	return ""
}

// decodeEntries decodes a list of named entries. The key has the content of an entry.
func decodeEntries[T any](list []json.RawMessage, key string) (map[string]*entry[T], error) {
	entries := make(map[string]*entry[T], len(list))
	for i, raw := range list {
		fields := map[string]json.RawMessage{}
		var name string
		if kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields) != nil {
			return nil, fmt.Errorf("entry %d is not an object", i+1)
		}
		if text, ok := fields["name"]; ok && json.Unmarshal(text, &name) != nil {
			return nil, fmt.Errorf("the name of entry %d is not text", i+1)
		}
		e := &entry[T]{}
		if content, ok := fields[key]; ok {
			e.field, e.err = decode(content, &e.value)
		}
		if entries[name] != nil {
			e = &entry[T]{err: invalid("is given more than once")}
		}
		entries[name] = e
	}
	return entries, nil
}

// decode decodes a JSON object. The error names neither the field, which it returns, nor
// its value.
func decode[T any](data []byte, into *T) (field string, err error) {
	if err = kjson.UnmarshalCaseSensitivePreserveInts(data, into); err == nil {
		return "", nil
	}
	fields := map[string]json.RawMessage{}
	if kjson.UnmarshalCaseSensitivePreserveInts(data, &fields) != nil {
		return "", invalid("is not an object")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		one, _ := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		var value T
		if err := kjson.UnmarshalCaseSensitivePreserveInts(one, &value); err != nil {
			if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
				return name, invalid("is not valid base64")
			}
			return name, invalid("has the wrong type")
		}
	}
	return "", invalid("cannot be decoded")
}
