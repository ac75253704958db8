// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

func TestEventsOfCache(t *testing.T) {
	g := NewWithT(t)
	r := &reader{events: make(chan func(*view), 1)}
	v := newView(logr.Discard(), &nameStore{}, &Options{})
	handled := func() bool {
		select {
		case event := <-r.events:
			event(v)
			return true
		default:
			return false
		}
	}
	first := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "a", ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}}
	second := first.DeepCopy()
	second.ResourceVersion = "2"
	key := inventory.KeyOf(first)
	handler := r.cacheHandler(t.Context())

	handler.OnAdd(first, true)
	g.Expect(handled()).To(BeTrue())
	g.Expect(v.profiles[key].ManagedFields).To(BeEmpty())
	g.Expect(first.ManagedFields).NotTo(BeEmpty(), "the cache's object is not changed")

	handler.OnUpdate(first, first)
	g.Expect(handled()).To(BeFalse(), "a resync is not an update")
	handler.OnUpdate(first, second)
	g.Expect(handled()).To(BeTrue())
	g.Expect(v.profiles[key].ResourceVersion).To(Equal("2"))

	handler.OnAdd(&corev1.Pod{}, false)
	g.Expect(handled()).To(BeFalse(), "not a profile")
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "fleet/a"})
	g.Expect(handled()).To(BeTrue())
	g.Expect(v.profiles).To(BeEmpty())

	ctx, cancel := context.WithCancel(t.Context())
	r.cacheHandler(ctx).OnAdd(first, false)
	cancel()
	g.Expect(handled()).To(BeTrue())
	g.Expect(v.profiles).To(BeEmpty(), "a handler that was removed")
}
