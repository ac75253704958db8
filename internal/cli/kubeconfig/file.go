// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/tools/clientcmd"
)

// file is the content of a kubeconfig. It keeps comments, the order and unknown fields.
// The zero value is an empty one.
type file struct {
	document yaml.Node
	changed  bool
}

// kinds are the lists of a kubeconfig: their key, and the key of the content of an entry.
var kinds = []struct{ list, entry string }{{"clusters", "cluster"}, {"contexts", "context"}, {"users", "user"}}

// parse parses a kubeconfig, which may be empty.
func parse(data []byte) (*file, error) {
	f := &file{}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(&f.document)
	switch {
	case errors.Is(err, io.EOF):
		return f, nil
	case err != nil:
		return nil, errors.New("not valid YAML") // the text may quote secrets
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
	}
	root := f.document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return &file{}, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("not a kubeconfig")
	}
	for _, kind := range kinds {
		list := find(root, kind.list)
		if list != nil && list.Kind != yaml.SequenceNode && list.Tag != "!!null" {
			return nil, fmt.Errorf("%s is not a list", kind.list)
		}
	}
	return f, nil
}

// encode returns the content, which kubectl can read.
func (f *file) encode() ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&f.document); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	if _, err := clientcmd.Load(out.Bytes()); err != nil {
		return nil, errors.New("kubectl could not read the result: correct the file first, for example with 'kubectl config view'")
	}
	return out.Bytes(), nil
}

// merge adds and updates the contexts, and removes those whose profile has gone. It
// changes nothing if it returns an error. Removed is called with their names, unless it
// is nil.
func (f *file) merge(wanted *contexts, removed func(name string)) error {
	if err := f.checkNames(wanted); err != nil {
		return err
	}
	keep := func(name string, m *mark) bool {
		return m.Inventory != wanted.inventory || !wanted.all || wanted.failed[m.Profile] ||
			slices.ContainsFunc(wanted.list, func(e *entries) bool { return e.name == name })
	}
	f.removeUnless(keep, removed)
	isNew := f.document.Kind == 0
	root := f.root()
	for _, e := range wanted.list {
		for i, content := range []any{e.cluster, e.context, e.user} {
			if err := f.put(root, i, e.name, content); err != nil {
				return err
			}
		}
	}
	if isNew && len(wanted.list) == 1 {
		current := find(root, "current-context")
		current.Value, current.Style = wanted.list[0].name, 0
	}
	return nil
}

// checkNames returns an error if an entry of one of the names is not one of the inventory.
func (f *file) checkNames(wanted *contexts) error {
	var foreign []string
	for i, kind := range kinds {
		for _, item := range f.items(i) {
			name, m := nameOf(item), markOf(item, kind.entry)
			if !slices.ContainsFunc(wanted.list, func(e *entries) bool { return e.name == name }) {
				continue
			}
			switch {
			case m == nil:
				foreign = append(foreign, fmt.Sprintf("%s %q", kind.entry, name))
			case m.Inventory != wanted.inventory:
				return fmt.Errorf("%s %q is of another inventory (%s): set --prefix, or remove it with --remove %s", kind.entry, name, m.Inventory, name)
			}
		}
	}
	if len(foreign) > 0 {
		return fmt.Errorf("%s already there, not from this command: rename it, or set --prefix", strings.Join(foreign, ", "))
	}
	return nil
}

// remove removes entries that the command has added: those of the names, or all. It
// returns an error for a name that is none of them.
func (f *file) remove(names []string, removed func(name string)) error {
	for _, name := range names {
		if !slices.ContainsFunc(f.marked(), func(marked string) bool { return marked == name }) {
			return fmt.Errorf("no context %q that this command has added", name)
		}
	}
	f.removeUnless(func(name string, _ *mark) bool { return len(names) > 0 && !slices.Contains(names, name) }, removed)
	return nil
}

// marked returns the names of entries that the command has added.
func (f *file) marked() []string {
	var names []string
	for i, kind := range kinds {
		for _, item := range f.items(i) {
			if markOf(item, kind.entry) != nil {
				names = append(names, nameOf(item))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// removeUnless removes the entries that the command has added and that are not kept.
func (f *file) removeUnless(keep func(name string, m *mark) bool, removed func(name string)) {
	var names []string
	for i, kind := range kinds {
		list := f.list(i)
		if list == nil {
			continue
		}
		list.Content = slices.DeleteFunc(list.Content, func(item *yaml.Node) bool {
			name, m := nameOf(item), markOf(item, kind.entry)
			if m == nil || keep(name, m) {
				return false
			}
			f.changed = true
			names = append(names, name)
			return true
		})
	}
	slices.Sort(names)
	if removed != nil {
		for _, name := range slices.Compact(names) {
			removed(name)
		}
	}
}

// root returns the mapping of the document, a new one if it is empty.
func (f *file) root() *yaml.Node {
	if f.document.Kind == 0 {
		const empty = "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\ncurrent-context: \"\"\nusers: []\n"
		if err := yaml.Unmarshal([]byte(empty), &f.document); err != nil {
			panic(err)
		}
		f.changed = true
	}
	return f.document.Content[0]
}

// list returns the list of a kind, or nil.
func (f *file) list(kind int) *yaml.Node {
	if f.document.Kind == 0 {
		return nil
	}
	return find(f.document.Content[0], kinds[kind].list)
}

// items returns the entries of a kind.
func (f *file) items(kind int) []*yaml.Node {
	if list := f.list(kind); list != nil {
		return list.Content
	}
	return nil
}
