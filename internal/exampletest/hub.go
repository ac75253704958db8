// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package exampletest

import (
	"context"
	"fmt"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// Hub is a hub and its members. It is the credentials.Method of their profiles, which
// needs no plugin.
type Hub struct {
	*mctest.Cluster
	Members *mctest.Fleet
}

// NewHub starts a hub and a number of members, which have no profiles yet.
func NewHub(t testing.TB, members int) *Hub {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &Hub{Cluster: mctest.New(t, mctest.Options{Scheme: scheme}), Members: mctest.NewFleet(t, members)}
}

// Join creates the profile of a member, in the namespace default and with the name of the
// member, as a healthy cluster. Of the given profile it uses labels and properties; nil is none.
func (h *Hub) Join(t testing.TB, member *mctest.Cluster, with *inventory.Profile) {
	t.Helper()
	p := &inventory.Profile{}
	if with != nil {
		p.Labels, p.Status.Properties = with.Labels, with.Status.Properties
	}
	p.Namespace, p.Name = "default", member.Name()
	p.Spec.ClusterManager.Name = "test"
	status := p.Status.DeepCopy()
	apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: inventory.ConditionControlPlaneHealthy, Status: metav1.ConditionTrue, Reason: "Healthy",
	})
	if err := h.Create(p); err != nil {
		t.Fatal(err)
	}
	p.Status = *status
	if err := h.UpdateStatus(p); err != nil {
		t.Fatal(err)
	}
}

// Leave deletes the profile of a member.
func (h *Hub) Leave(t testing.TB, member *mctest.Cluster) {
	t.Helper()
	if err := h.Delete(&inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: member.Name()}}); err != nil {
		t.Fatal(err)
	}
}

// Resolve implements credentials.Method.
func (h *Hub) Resolve(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	for _, c := range h.Members.Clusters() {
		if c.Name() == profile.Name {
			return credentials.FromRESTConfig(c.Config()), nil
		}
	}
	return nil, fmt.Errorf("no member %q", profile.Name)
}
