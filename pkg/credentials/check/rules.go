// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// ParseRules parses a file with the permissions that a controller needs: a list of
// RBAC rules in YAML or JSON, at the top or under the key "rules", as in a ClusterRole.
// Its errors start with the name of the file and name the rule.
func ParseRules(name string, data []byte) ([]rbacv1.PolicyRule, error) {
	fail := func(err error) ([]rbacv1.PolicyRule, error) { return nil, fmt.Errorf("rules file %s: %w", name, err) }
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return fail(err)
	}
	var rules []rbacv1.PolicyRule
	if bytes.HasPrefix(asJSON, []byte("[")) {
		if err := yaml.UnmarshalStrict(asJSON, &rules); err != nil {
			return fail(err)
		}
	} else {
		var role struct {
			APIVersion      string              `json:"apiVersion"`
			Kind            string              `json:"kind"`
			Metadata        map[string]any      `json:"metadata"`
			AggregationRule map[string]any      `json:"aggregationRule"`
			Rules           []rbacv1.PolicyRule `json:"rules"`
		}
		if err := yaml.UnmarshalStrict(asJSON, &role); err != nil {
			return fail(err)
		}
		rules = role.Rules
	}
	if len(rules) == 0 {
		return fail(errors.New("there are no rules"))
	}
	var faults []error
	for i := range rules {
		if err := checkRule(&rules[i]); err != nil {
			faults = append(faults, fmt.Errorf("rules file %s: rules[%d]: %w", name, i, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return rules, nil
}

// checkRule returns an error as the API server does.
func checkRule(rule *rbacv1.PolicyRule) error {
	switch {
	case len(rule.Verbs) == 0:
		return errors.New("verbs: must not be empty")
	case len(rule.NonResourceURLs) > 0 && (len(rule.APIGroups) > 0 || len(rule.Resources) > 0 || len(rule.ResourceNames) > 0):
		return errors.New("nonResourceURLs: cannot be combined with resources")
	case len(rule.NonResourceURLs) > 0:
		return nil
	case len(rule.APIGroups) == 0:
		return errors.New(`apiGroups: must not be empty; the core group is ""`)
	case len(rule.Resources) == 0:
		return errors.New("resources: must not be empty")
	}
	return nil
}
