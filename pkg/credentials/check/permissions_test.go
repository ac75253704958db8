// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/check"
)

func TestPermissions(t *testing.T) {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "pods/log"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, ResourceNames: []string{"web"}, Verbs: []string{"update"}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}
	granting := func(rules ...authorizationv1.ResourceRule) authorizationv1.SubjectRulesReviewStatus {
		return authorizationv1.SubjectRulesReviewStatus{ResourceRules: rules}
	}
	rule := func(group, resource, name string, verbs ...string) authorizationv1.ResourceRule {
		r := authorizationv1.ResourceRule{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}}
		if name != "" {
			r.ResourceNames = []string{name}
		}
		return r
	}
	in := func(namespace string) func(authorizationv1.SelfSubjectAccessReviewSpec) bool {
		return func(spec authorizationv1.SelfSubjectAccessReviewSpec) bool {
			a := spec.ResourceAttributes
			return a != nil && a.Namespace == namespace && (a.Resource != "pods" || a.Subresource == "log")
		}
	}
	all := []string{
		"get configmaps", "get pods/log", "list configmaps", "list pods/log", `update deployments.apps/scale "web"`, "get /metrics",
	}
	inA := []string{
		"get configmaps in namespace a", "get pods/log in namespace a", "list configmaps in namespace a", "list pods/log in namespace a",
		`update deployments.apps/scale "web" in namespace a`, "get /metrics",
	}
	for _, tc := range []struct {
		name       string
		server     *apiServer
		namespaces []string
		missing    []string
	}{
		{"in all namespaces, each is reviewed", &apiServer{allowed: allowAll}, nil, nil},
		{"in all namespaces, rules of one namespace grant nothing", &apiServer{rules: granting(rule("*", "*", "", "*")), allowed: in("default")}, nil, all},
		{"in all namespaces, no path", &apiServer{allowed: in("")}, nil, all[5:]},
		{"nothing in a namespace, by a complete answer", &apiServer{allowed: allowAll}, []string{"a"}, inA[:5]},
		{"wildcards in a namespace", &apiServer{
			rules:   granting(rule("*", "*", "", "*")),
			allowed: func(spec authorizationv1.SelfSubjectAccessReviewSpec) bool { return spec.NonResourceAttributes != nil },
		}, []string{"a"}, nil},
		{"subresources of all resources", &apiServer{rules: granting(rule("", "*/log", "", "get", "list"), rule("apps", "*/scale", "", "update"))}, []string{"a"}, []string{inA[0], inA[2], inA[5]}},
		{"an object of the same name", &apiServer{rules: granting(rule("apps", "deployments/scale", "web", "update"))}, []string{"a"}, append(inA[:4:4], inA[5])},
		{"an object of another name", &apiServer{rules: granting(rule("apps", "deployments/scale", "api", "update"))}, []string{"a"}, inA},
		{"only the resource, not the subresource", &apiServer{rules: granting(rule("apps", "deployments", "", "*"))}, []string{"a"}, inA},
		{"a rule for some objects only", &apiServer{rules: granting(rule("", "configmaps", "x", "get", "list"))}, []string{"a"}, inA},
		{"an incomplete answer", &apiServer{rules: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, allowed: in("a")}, []string{"a"}, inA[5:]},
		{"no answer", &apiServer{noRules: true, allowed: allowAll}, []string{"a", "b"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			tc.server.user = "jane"
			server := newAPIServer(t, tc.server, nil)
			report := check.Profile(t.Context(), profileOf("c1", server.cluster()), check.Options{
				Method: newResolver(t, credentials.Options{}, working(t)), Rules: rules, Namespaces: tc.namespaces,
			})
			var missing []string
			for _, p := range report.MissingPermissions {
				missing = append(missing, p.String())
			}
			g.Expect(missing).To(ConsistOf(tc.missing))
			step := report.Step(check.StepPermissions)
			if len(tc.missing) == 0 {
				g.Expect(step.Status).To(Equal(check.OK), step.Message)
				return
			}
			g.Expect(step.Cause).To(Equal(check.PermissionsMissing))
			g.Expect(step.Message).To(ContainSubstring(tc.missing[0]))
		})
	}
}

func TestParseRules(t *testing.T) {
	file := "../../../examples/kubeconfig/scripts/rules.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, content string
		rules         int
		err           string
	}{
		{"the example", string(data), 1, ""},
		{"a list", "- apiGroups: ['']\n  resources: [pods]\n  verbs: [get]\n- nonResourceURLs: [/metrics]\n  verbs: [get]\n", 2, ""},
		{"JSON", `[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`, 1, ""},
		{"a ClusterRole", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules:\n- apiGroups: ['']\n  resources: [pods]\n  verbs: [get]\n", 1, ""},
		{"nothing", "", 0, "there are no rules"},
		{"an unknown field", "- apiGroup: ['']\n  resources: [pods]\n  verbs: [get]\n", 0, `unknown field "apiGroup"`},
		{"another document", "kind: Pod\nspec: {}\n", 0, `unknown field "spec"`},
		{"no verbs", "- apiGroups: ['']\n  resources: [pods]\n", 0, "rules[0]: verbs: must not be empty"},
		{"no groups", "- resources: [pods]\n  verbs: [get]\n", 0, `rules[0]: apiGroups: must not be empty; the core group is ""`},
		{"no resources", "- apiGroups: ['']\n  verbs: [get]\n", 0, "rules[0]: resources: must not be empty"},
		{"both kinds", "- apiGroups: ['']\n  nonResourceURLs: [/a]\n  verbs: [get]\n", 0, "rules[0]: nonResourceURLs: cannot be combined"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			rules, err := check.ParseRules("rules.yaml", []byte(tc.content))
			if tc.err != "" {
				g.Expect(err).To(MatchError(And(HavePrefix("rules file rules.yaml: "), ContainSubstring(tc.err))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rules).To(HaveLen(tc.rules))
		})
	}
}
