// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory/register"
)

func TestUnregister(t *testing.T) {
	g := NewWithT(t)
	o := options(t, east)
	mustRegister(t, o)
	token := string(secretOf(t, o).Data["token"])

	// What others have stays.
	neighbour := o
	neighbour.Namespace = options(t, east).Namespace
	mustRegister(t, neighbour)
	g.Expect(hub.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "theirs"}})).To(Succeed())

	dry := unregister(o)
	dry.DryRun = true
	result, err := register.Unregister(t.Context(), dry)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Changes).To(HaveLen(7))
	g.Expect(objects(t, o)).To(HaveLen(6))

	result, err = register.Unregister(t.Context(), unregister(o))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Changes).To(Satisfy(haveActions(register.Deleted)))
	g.Expect(result.Changes).To(HaveLen(7)) // not the namespace of the member, which the neighbour uses
	g.Expect(result.Left).To(BeEmpty())
	g.Expect(objects(t, o)).To(BeEmpty())
	g.Expect(objects(t, neighbour)).To(HaveLen(6))
	// 403 as long as the API server remembers the deleted user.
	g.Expect(allowed(t, east, token)).To(BeElementOf(401, 403))
	g.Expect(hub.Client.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: "theirs"}, &corev1.Secret{})).To(Succeed())

	_, err = register.Unregister(t.Context(), unregister(o))
	g.Expect(err).To(MatchError(register.ErrNotRegistered))

	// The last one takes the namespace of the member with it.
	result, err = register.Unregister(t.Context(), unregister(neighbour))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Changes).To(ContainElement(HaveField("Kind", "Namespace")))
}

func TestNamespacesThatStay(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(o register.Options) []client.Object
		after   bool
	}{
		{"one that existed before", func(o register.Options) []client.Object {
			return []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.MemberNamespace}}}
		}, false},
		{"one with something else in it", func(o register.Options) []client.Object {
			return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.MemberNamespace, Name: "theirs"}}}
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			o := options(t, east)
			if !tt.after {
				g.Expect(east.Create(t.Context(), tt.prepare(o)...)).To(Succeed())
			}
			mustRegister(t, o)
			if tt.after {
				g.Expect(east.Create(t.Context(), tt.prepare(o)...)).To(Succeed())
			}
			_, err := register.Unregister(t.Context(), unregister(o))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(objects(t, o)).To(BeEmpty())
			namespace := &corev1.Namespace{}
			g.Expect(east.Client.Get(t.Context(), client.ObjectKey{Name: o.MemberNamespace}, namespace)).To(Succeed())
			g.Expect(namespace.DeletionTimestamp).To(BeNil())
		})
	}
}

// TestUnregisterInterrupted ends Unregister before each of its requests that write
// something. It reports what is left, and can be called again.
func TestUnregisterInterrupted(t *testing.T) {
	g := NewWithT(t)
	for steps := int32(0); ; steps++ {
		o := options(t, east)
		mustRegister(t, o)
		var left atomic.Int32
		left.Store(steps)
		interrupted := unregister(o)
		interrupted.Hub, interrupted.Member = failAfter(o.Hub, &left), failAfter(o.Member, &left)
		result, err := register.Unregister(t.Context(), interrupted)
		if err == nil {
			g.Expect(steps).To(BeEquivalentTo(8))
			return
		}
		g.Expect(err).To(MatchError(errInjected))
		g.Expect(result.Changes).To(HaveLen(int(steps)))
		g.Expect(result.Left).To(HaveLen(8 - int(steps)))
		_, err = register.Unregister(t.Context(), unregister(o))
		g.Expect(err).NotTo(HaveOccurred(), fmt.Sprint("after step ", steps))
		g.Expect(objects(t, o)).To(BeEmpty())
	}
}

func TestUnregisterRefuses(t *testing.T) {
	planes(t)
	g := NewWithT(t)
	o := options(t, east)
	mustRegister(t, o)
	before := objects(t, o)

	// A member that does not respond.
	gone := unregister(o)
	gone.Member = rest.CopyConfig(o.Member)
	gone.Member.Host = "https://127.0.0.1:1"
	_, err := register.Unregister(t.Context(), gone)
	g.Expect(err).To(MatchError(register.ErrUnreachable))
	g.Expect(objects(t, o)).To(ConsistOf(before))

	// Another member.
	other := unregister(o)
	other.Member = west.Config
	_, err = register.Unregister(t.Context(), other)
	g.Expect(err).To(MatchError(register.ErrOtherCluster))
	g.Expect(objects(t, o)).To(ConsistOf(before))

	// No member.
	none := unregister(o)
	none.Member = nil
	_, err = register.Unregister(t.Context(), none)
	g.Expect(err).To(MatchError(register.ErrInvalidOptions))

	// A profile of another manager.
	profile := profileOf(t, o)
	delete(profile.Labels, register.LabelRegistration)
	g.Expect(hub.Client.Update(t.Context(), profile)).To(Succeed())
	_, err = register.Unregister(t.Context(), unregister(o))
	g.Expect(err).To(MatchError(register.ErrNotOwned))
	g.Expect(objects(t, o)).To(ConsistOf(before))
}

func TestSkipMember(t *testing.T) {
	g := NewWithT(t)
	o := options(t, east)
	mustRegister(t, o)
	skip := unregister(o)
	skip.Member, skip.SkipMember = nil, true
	result, err := register.Unregister(t.Context(), skip)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Changes).To(HaveLen(2))
	g.Expect(result.Left).To(ConsistOf(ContainSubstring(register.LabelRegistration)))
	g.Expect(strings.Join(objects(t, o), " ")).NotTo(ContainSubstring("hub"))

	// The objects in the member can be removed later.
	_, err = register.Unregister(t.Context(), unregister(o))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects(t, o)).To(BeEmpty())
}
