// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"cmp"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// ParseRules returns the rules of a file in YAML or JSON:
//
//	rules:
//	- apiGroups: [""]
//	  resources: ["configmaps"]
//	  verbs: ["get", "list", "watch"]
//
// It may have the apiVersion, kind and metadata of a ClusterRole, which are ignored.
// Unknown fields are errors.
func ParseRules(data []byte) ([]rbacv1.PolicyRule, error) {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	role := rbacv1.ClusterRole{}
	strict, err := json.UnmarshalStrict(text, &role)
	if err := cmp.Or(err, errors.Join(strict...)); err != nil {
		return nil, fmt.Errorf("not a list of rules: %w", err)
	}
	switch {
	case role.Kind != "" && role.Kind != "ClusterRole":
		return nil, fmt.Errorf("kind %s: must be ClusterRole, or omitted", role.Kind)
	case role.AggregationRule != nil:
		return nil, errors.New("aggregationRule is not supported: list the rules")
	case len(role.Rules) == 0:
		return nil, errors.New("no rules: list what controllers may do in the member")
	}
	for i, rule := range role.Rules {
		if len(rule.Verbs) == 0 || len(rule.Resources) == 0 && len(rule.NonResourceURLs) == 0 {
			return nil, fmt.Errorf("rules[%d]: must have verbs, and resources or nonResourceURLs", i)
		}
	}
	return role.Rules, nil
}
