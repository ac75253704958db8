// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

func TestInvalidOptions(t *testing.T) {
	method := struct{ credentials.Method }{}
	for _, tc := range []struct {
		name    string
		options clusterinventoryapi.Options
		want    string
	}{
		{"no credentials", clusterinventoryapi.Options{}, "Options.Credentials"},
		{"an invalid selection", clusterinventoryapi.Options{
			Credentials: method, Selection: inventory.Selection{Health: []inventory.HealthStatus{"Fine"}},
		}, `unknown health "Fine"`},
		{"an invalid placement", clusterinventoryapi.Options{
			Credentials: method, Placement: &hub.Placement{Namespace: "fleet"},
		}, "Placement.DecisionKey"},
		{"another hub without namespaces", clusterinventoryapi.Options{
			Credentials: method, Hub: &rest.Config{},
		}, "must specify Namespaces"},
		{"a selector without namespaces", clusterinventoryapi.Options{
			Credentials: method, LabelSelector: labels.Everything(),
		}, "must specify Namespaces with a LabelSelector or FieldSelector"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := clusterinventoryapi.New(tc.options)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestPlacementStatus(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t, func(o *clusterinventoryapi.Options, _ *fixture) {
		o.Placement = &hub.Placement{Namespace: "default", Name: "decision"}
		o.Namespaces = []string{"kube-public"} // not that of the profile
	})
	g.Eventually(f.PlacementStatus).WithTimeout(timeout).Should(Equal(hub.PlacementStatus{
		Missing: 1, MissingProfiles: []inventory.Key{{Namespace: "default", Name: "us"}},
	}))
}
