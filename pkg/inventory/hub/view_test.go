// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/internal/metadata"
)

// eventLog is a sink that records the calls.
type eventLog struct{ calls []string }

func (l *eventLog) Put(p *inventory.Profile) {
	l.calls = append(l.calls, "put "+p.Name+" "+inventory.ClusterSet(p))
}
func (l *eventLog) Remove(key inventory.Key) { l.calls = append(l.calls, "remove "+key.Name) }
func (l *eventLog) Synced()                  { l.calls = append(l.calls, "synced") }

func TestWaitForNamespaces(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(0, 0)
	sink := &eventLog{}
	v := newView(logr.Discard(), sink, &Options{})
	v.unreadProfiles["fleet"], v.unreadNamespaces["fleet"] = true, true

	v.putProfile(&inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a"}})
	_, waits := v.advance(now.Add(time.Hour))
	g.Expect(waits).To(BeFalse(), "no timeout while the hub cannot be read")

	v.profilesRead("fleet", now)
	next, waits := v.advance(now)
	g.Expect(waits).To(BeTrue())
	g.Expect(next).To(Equal(now.Add(namespaceTimeout)))
	g.Expect(sink.calls).To(BeEmpty())

	v.advance(next)
	g.Expect(sink.calls).To(Equal([]string{"put a ", "synced"}))

	v.putNamespace("fleet", "late")
	v.putNamespace("fleet", "late")
	v.putNamespace("elsewhere", "set")
	v.advance(next)
	g.Expect(sink.calls).To(Equal([]string{"put a ", "synced", "put a late"}))
}

// named returns a profile with the cluster name, created n seconds after 1970.
func named(namespace, name, clusterName string, n int64) *inventory.Profile {
	p := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(n, 0),
	}}
	return metadata.WithAnnotation(p, inventory.AnnotationClusterName, clusterName)
}

func TestOrderOfPrecedence(t *testing.T) {
	profiles := []*inventory.Profile{
		named("a", "renamed", "b/prod", 1), named("b", "prod", "", 9), named("b", "test", "", 2),
		named("c", "first", "kind/eu", 3), named("a", "second", "kind/eu", 4), named("d", "second", "kind/eu", 4),
	}
	want := []string{"put test ", "put prod ", "put renamed ", "put first ", "put second ", "put second "}
	now := time.Unix(0, 0)
	list := func(v *view) {
		for _, p := range profiles {
			v.putProfile(p)
			v.advance(now)
		}
		v.profilesRead("", now)
		v.advance(now)
	}
	readNamespaces := func(v *view) {
		v.namespacesRead("")
		v.advance(now)
	}
	for _, tc := range []struct {
		name      string
		placement *Placement
		begin     func(v *view)
	}{
		{"namespaces after profiles", nil, func(v *view) { list(v); readNamespaces(v) }},
		{"namespaces before profiles", nil, func(v *view) { readNamespaces(v); list(v) }},
		{"a placement after both", &Placement{}, func(v *view) {
			list(v)
			readNamespaces(v)
			v.placementRead(now)
			v.advance(now)
			v.putSlice(slice("", "", "1", "a/renamed b/prod b/test c/first a/second d/second"), now)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 20 { // the order of maps varies
				sink := &eventLog{}
				v := newView(logr.Discard(), sink, &Options{TrustAnnotations: true, Placement: tc.placement})
				v.unreadProfiles[""], v.unreadNamespaces[""] = true, true
				tc.begin(v)
				puts := slices.DeleteFunc(sink.calls, func(what string) bool { return what == "synced" })
				NewWithT(t).Expect(puts).To(Equal(want))
			}
		})
	}
}

func TestUnreadNamespaceDelaysNoOther(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(0, 0)
	sink := &eventLog{}
	v := newView(logr.Discard(), sink, &Options{})
	v.unreadProfiles["a"], v.unreadProfiles["b"] = true, true
	v.advance(now)
	v.putProfile(named("a", "one", "", 1))
	v.profilesRead("a", now)
	v.putProfile(named("a", "two", "", 1))
	v.advance(now)
	g.Expect(sink.calls).To(Equal([]string{"put one ", "put two "}))
}
