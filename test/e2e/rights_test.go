// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	hubsource "github.com/rollcall-dev/rollcall/pkg/inventory/hub"
)

// The rights that the documentation of the hub source names are enough. Those to
// read namespaces are optional.
func TestNamespacedRights(t *testing.T) {
	g := NewWithT(t)
	hub := realPlanes(t).hub
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "rights", Name: "controller"}}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	in := metav1.ObjectMeta{Namespace: "rights", Name: "inventory"}
	g.Expect(hub.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "rights", Labels: map[string]string{v1alpha1.LabelClusterSetKey: "production"}}},
		account,
		&rbacv1.Role{ObjectMeta: in, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"clusterprofiles", "placementdecisions"}, Verbs: []string{"list", "watch"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: in, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: in.Name}, Subjects: subjects,
		},
		&v1alpha1.PlacementDecision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "rights", Name: "slice", Labels: map[string]string{v1alpha1.DecisionKeyLabel: "wanted"}},
			Decisions:  []v1alpha1.ClusterDecision{{ClusterProfileRef: v1alpha1.ClusterProfileReference{Name: "decided"}}},
		},
	)).To(Succeed())
	for _, name := range []string{"decided", "other"} {
		profile, err := inventory.Synthesize(inventory.Synthetic{ClusterName: name, Manager: "test", Namespace: "rights"})
		g.Expect(err).NotTo(HaveOccurred())
		apply(t, hub, profile)
	}
	token, err := hub.IssueToken(t.Context(), account, nil)
	g.Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(hub.Config)
	config.BearerToken = token
	options := hubsource.Options{
		Namespaces: []string{"rights"},
		Placement:  &hubsource.Placement{Namespace: "rights", DecisionKey: "wanted"},
	}

	g.Eventually(runSource(t, config, options)).Should(Equal("decided (ClusterSet ) synced"))

	name := metav1.ObjectMeta{Name: "read-namespace-rights"}
	g.Expect(hub.Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"rights"}, Verbs: []string{"list", "watch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name}, Subjects: subjects,
		},
	)).To(Succeed())
	g.Eventually(runSource(t, config, options)).Should(Equal("decided (ClusterSet production) synced"))
}

// runSource runs a source until the test ends. The function returned describes
// what it has sent.
func runSource(t *testing.T, config *rest.Config, options hubsource.Options) func() string {
	t.Helper()
	source, err := hubsource.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	sink := &sink{profiles: map[inventory.Key]string{}}
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return sink.String
}

// sink keeps what a source sends.
type sink struct {
	mu       sync.Mutex
	profiles map[inventory.Key]string
	synced   string
}

func (s *sink) Put(p *inventory.Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profiles[inventory.KeyOf(p)] = p.Name + " (ClusterSet " + inventory.ClusterSet(p) + ")"
}

func (s *sink) Remove(key inventory.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.profiles, key)
}

func (s *sink) Synced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = " synced"
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Values(s.profiles)), ", ") + s.synced
}
