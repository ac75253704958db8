// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register_test

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/inventory/register"
)

func TestParseRules(t *testing.T) {
	g := NewWithT(t)
	example, err := os.ReadFile("../../../examples/kubeconfig/scripts/rules.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	parsed, err := register.ParseRules(example)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed).To(ConsistOf(HaveField("Resources", ConsistOf("configmaps"))))

	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\nrules: [{nonResourceURLs: [/x], verbs: [get]}]"
	parsed, err = register.ParseRules([]byte(role))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed).To(HaveLen(1))

	for _, tt := range []struct{ name, text, want string }{
		{"an unknown field", "rules: [{verb: [get]}]", `unknown field "rules[0].verb"`},
		{"a field in another case", "rules: [{Verbs: [get], resources: [x]}]", "Verbs"},
		{"a duplicate field", "rules: []\nrules: []", "already set"},
		{"a list", "- verbs: [get]", "not a list of rules"},
		{"nothing", "", "no rules"},
		{"a rule without verbs", "rules: [{resources: [x]}]", "rules[0]: must have verbs"},
		{"a rule without resources", "rules: [{verbs: [get]}]", "rules[0]: must have verbs, and resources"},
		{"another kind", "kind: Role\nrules: [{resources: [x], verbs: [get]}]", "must be ClusterRole"},
		{"an aggregation", "aggregationRule: {}\n", "aggregationRule"},
	} {
		_, err := register.ParseRules([]byte(tt.text))
		g.Expect(err).To(MatchError(ContainSubstring(tt.want)), tt.name)
	}
}
