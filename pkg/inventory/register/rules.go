// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
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
	role := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(data, &role); err != nil {
		return nil, fmt.Errorf("not a list of rules: %w", err)
	}
	switch {
	case role.Kind != "" && role.Kind != "ClusterRole":
		return nil, fmt.Errorf("kind %s: must be ClusterRole, or omitted", role.Kind)
	case role.AggregationRule != nil:
		return nil, fmt.Errorf("aggregationRule is not supported: list the rules")
	case len(role.Rules) == 0:
		return nil, fmt.Errorf("no rules: list what controllers may do in the member")
	}
	for i, rule := range role.Rules {
		if len(rule.Verbs) == 0 || len(rule.Resources) == 0 && len(rule.NonResourceURLs) == 0 {
			return nil, fmt.Errorf("rules[%d]: must have verbs, and resources or nonResourceURLs", i)
		}
	}
	return role.Rules, nil
}
