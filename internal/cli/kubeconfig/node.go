// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"encoding/json"
	"reflect"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// find returns the value of the key in a mapping, or nil.
func find(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return resolve(mapping.Content[i+1])
		}
	}
	return nil
}

// resolve returns what an alias stands for.
func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// nameOf returns the name of an entry, or "".
func nameOf(item *yaml.Node) string {
	if name := find(resolve(item), "name"); name != nil {
		return name.Value
	}
	return ""
}

// markOf returns the mark of an entry, or nil if the command has not added it.
func markOf(item *yaml.Node, entry string) *mark {
	extensions := find(find(resolve(item), entry), "extensions")
	if extensions == nil || extensions.Kind != yaml.SequenceNode {
		return nil
	}
	for _, extension := range extensions.Content {
		if nameOf(extension) != markName {
			continue
		}
		content := find(resolve(extension), "extension")
		inventory, profile := find(content, "inventory"), find(content, "profile")
		if inventory == nil || profile == nil {
			return nil
		}
		return &mark{Inventory: inventory.Value, Profile: profile.Value}
	}
	return nil
}

// put adds the entry, or updates it in its place.
func (f *file) put(root *yaml.Node, kind int, name string, content any) error {
	entry, err := json.Marshal(map[string]any{"name": name, kinds[kind].entry: content})
	if err != nil {
		return err
	}
	list := find(root, kinds[kind].list)
	if list == nil {
		list = &yaml.Node{Kind: yaml.SequenceNode}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: kinds[kind].list}, list)
	}
	if list.Kind != yaml.SequenceNode { // null
		*list = yaml.Node{Kind: yaml.SequenceNode}
	}
	if root.Style&yaml.FlowStyle == 0 {
		list.Style &^= yaml.FlowStyle
		if entry, err = sigsyaml.JSONToYAML(entry); err != nil {
			return err
		}
	}
	var document yaml.Node
	if err := yaml.Unmarshal(entry, &document); err != nil {
		return err
	}
	added := document.Content[0]
	for _, item := range list.Content {
		if nameOf(item) != name {
			continue
		}
		old := resolve(item)
		keepNamespace(added, old)
		if !equal(old, added) {
			added.HeadComment, added.LineComment, added.FootComment = old.HeadComment, old.LineComment, old.FootComment
			*old = *added
			f.changed = true
		}
		return nil
	}
	list.Content = append(list.Content, added)
	f.changed = true
	return nil
}

// keepNamespace gives the new entry the namespace of an old context, which users set.
func keepNamespace(added, old *yaml.Node) {
	const key = "namespace"
	namespace := find(find(old, "context"), key)
	context := find(added, "context")
	if namespace != nil && context != nil {
		context.Content = append(context.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, namespace)
	}
}

// equal reports whether both have the same content, in any order of keys.
func equal(a, b *yaml.Node) bool {
	var left, right any
	return a.Decode(&left) == nil && b.Decode(&right) == nil && reflect.DeepEqual(left, right)
}
