// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

func TestRestoredHub(t *testing.T) {
	for _, tc := range []struct {
		name  string
		set   func(*mcmanager.Options)
		fault *mctest.Fault
	}{
		{"all namespaces", func(*mcmanager.Options) {}, nil},
		{"one namespace", func(o *mcmanager.Options) {
			o.Cache.DefaultNamespaces = map[string]cache.Config{"default": {}}
		}, nil},
		{"with leader election", func(o *mcmanager.Options) {
			o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "test", "default"
			o.LeaderElectionReleaseOnCancel = true
		}, nil},
		{"namespaces cannot be listed", func(*mcmanager.Options) {}, new(mctest.Forbidden.On("namespaces").For("list"))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
			home, members := mctest.New(t, mctest.Options{Scheme: scheme}), map[string]*mctest.Cluster{}
			create := func(name string) *inventory.Profile {
				profile := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
				createHealthy(g, home, profile)
				return profile
			}
			for _, name := range []string{"kept", "lost", "phantom", "new", "newer"} {
				members[name] = mctest.New(t)
			}
			if tc.fault != nil {
				home.Fault(*tc.fault)
			}
			provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{
				Credentials: method(func(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
					return credentials.FromRESTConfig(members[profile.Name].Config()), nil
				}),
			})
			g.Expect(err).NotTo(HaveOccurred())
			options := mctest.ManagerOptions()
			tc.set(&options)
			mgr, err := mcmanager.New(home.Config(), provider, options)
			g.Expect(err).NotTo(HaveOccurred())
			create("kept")
			lost := create("lost")
			mctest.StartManager(t, mgr)
			clusters := func() string {
				var states []string
				for _, s := range provider.Status() {
					states = append(states, fmt.Sprintf("%s=%s", s.Profile.Name, s.State))
				}
				slices.Sort(states)
				return strings.Join(states, " ")
			}
			g.Eventually(clusters).WithTimeout(timeout).Should(Equal("kept=Ready lost=Ready"))

			backup := home.Snapshot()
			g.Expect(home.Delete(lost)).To(Succeed())
			for range 5 { // the hub stays far behind after it is restored
				g.Expect(home.Delete(create("phantom"))).To(Succeed())
			}
			create("phantom")
			g.Eventually(clusters).WithTimeout(timeout).Should(Equal("kept=Ready phantom=Ready"))

			home.Restore(backup)
			create("new")
			g.Eventually(clusters).WithTimeout(timeout).Should(Equal("kept=Ready lost=Ready new=Ready"))
			_, err = mgr.GetCluster(t.Context(), "default/phantom")
			g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
			create("newer")
			g.Eventually(clusters).WithTimeout(timeout).Should(Equal("kept=Ready lost=Ready new=Ready newer=Ready"))
		})
	}
}
