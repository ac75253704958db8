// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

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

	rollcall "github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
)

// The rights that the hub source's documentation names are enough, and those
// to read namespaces may be missing.
func TestTheRightsForSingleNamespacesAreEnough(t *testing.T) {
	g := NewWithT(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "rights", Name: "controller"}}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	in := metav1.ObjectMeta{Namespace: "rights", Name: "inventory"}
	g.Expect(hubPlane.Create(t.Context(),
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
		profile, err := rollcall.Synthesize(rollcall.Synthetic{ClusterName: name, Manager: "test", Namespace: "rights"})
		g.Expect(err).NotTo(HaveOccurred())
		apply(t, profile)
	}
	token, err := hubPlane.IssueToken(t.Context(), account, nil)
	g.Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(hubPlane.Config)
	config.BearerToken = token
	options := hub.Options{
		Namespaces: []string{"rights"},
		Placement:  &hub.Placement{Namespace: "rights", DecisionKey: "wanted"},
	}

	g.Eventually(read(t, config, options)).WithTimeout(patience).Should(Equal("decided (ClusterSet ) synced"))

	name := metav1.ObjectMeta{Name: "read-namespace-rights"}
	g.Expect(hubPlane.Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"rights"}, Verbs: []string{"list", "watch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name}, Subjects: subjects,
		},
	)).To(Succeed())
	g.Eventually(read(t, config, options)).WithTimeout(patience).Should(Equal("decided (ClusterSet production) synced"))
}

// read runs a source until the test ends, and tells what it has told.
func read(t *testing.T, config *rest.Config, options hub.Options) func() string {
	t.Helper()
	source, err := hub.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &roll{profiles: map[rollcall.Key]string{}}
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, r) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r.String
}

// roll is a sink that keeps what it is told.
type roll struct {
	mu       sync.Mutex
	profiles map[rollcall.Key]string
	synced   string
}

func (r *roll) Put(p *rollcall.Profile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.profiles[rollcall.KeyOf(p)] = p.Name + " (ClusterSet " + rollcall.ClusterSet(p) + ")"
}

func (r *roll) Remove(key rollcall.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.profiles, key)
}

func (r *roll) Synced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced = " synced"
}

func (r *roll) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Values(r.profiles)), ", ") + r.synced
}
