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
)

// told is a sink that writes down what it is told.
type told struct{ all []string }

func (t *told) Put(p *inventory.Profile) {
	t.all = append(t.all, "put "+p.Name+" "+inventory.ClusterSet(p))
}
func (t *told) Remove(key inventory.Key) { t.all = append(t.all, "remove "+key.Name) }
func (t *told) Synced()                  { t.all = append(t.all, "synced") }

func TestNothingIsToldBeforeNamespacesAreKnownOrTakeTooLong(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(0, 0)
	sink := &told{}
	v := newView(logr.Discard(), sink, &Options{})
	v.unreadProfiles["fleet"], v.unreadNamespaces["fleet"] = true, true

	v.putProfile(&inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a"}})
	_, waits := v.advance(now.Add(time.Hour))
	g.Expect(waits).To(BeFalse(), "a hub that is out is waited for without limit")

	v.profilesRead("fleet", now)
	next, waits := v.advance(now)
	g.Expect(waits).To(BeTrue())
	g.Expect(next).To(Equal(now.Add(namespaceLimit)))
	g.Expect(sink.all).To(BeEmpty())

	v.advance(next)
	g.Expect(sink.all).To(Equal([]string{"put a ", "synced"}))

	v.putNamespace("fleet", "late")
	v.putNamespace("fleet", "late")
	v.putNamespace("elsewhere", "set")
	v.advance(next)
	g.Expect(sink.all).To(Equal([]string{"put a ", "synced", "put a late"}))
}

// claim returns a profile that comes to the name, created n seconds after 1970.
func claim(namespace, name, clusterName string, n int64) *inventory.Profile {
	p := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(n, 0),
	}}
	return inventory.WithAnnotation(p, inventory.AnnotationClusterName, clusterName)
}

func TestProfilesAreToldInTheOrderOfTheirClaims(t *testing.T) {
	profiles := []*inventory.Profile{
		claim("a", "squatter", "b/prod", 1), claim("b", "prod", "", 9), claim("b", "test", "", 2),
		claim("c", "first", "kind/eu", 3), claim("a", "second", "kind/eu", 4), claim("d", "second", "kind/eu", 4),
	}
	want := []string{"put test ", "put prod ", "put squatter ", "put first ", "put second ", "put second "}
	now := time.Unix(0, 0)
	list := func(v *view) {
		for _, p := range profiles {
			v.putProfile(p)
			v.advance(now)
		}
		v.profilesRead("", now)
		v.advance(now)
	}
	know := func(v *view) {
		v.namespacesRead("")
		v.advance(now)
	}
	for _, tc := range []struct {
		name      string
		placement *Placement
		begin     func(v *view)
	}{
		{"where namespaces are known after profiles", nil, func(v *view) { list(v); know(v) }},
		{"where namespaces are known before profiles", nil, func(v *view) { know(v); list(v) }},
		{"where a scheduler decides on them together", &Placement{}, func(v *view) {
			list(v)
			know(v)
			v.placementRead(now)
			v.advance(now)
			v.putSlice(slice("", "", "1", "a/squatter b/prod b/test c/first a/second d/second"), now)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 20 { // so that no order of a map is the right one by chance
				sink := &told{}
				v := newView(logr.Discard(), sink, &Options{TrustAnnotations: true, Placement: tc.placement})
				v.unreadProfiles[""], v.unreadNamespaces[""] = true, true
				tc.begin(v)
				puts := slices.DeleteFunc(sink.all, func(what string) bool { return what == "synced" })
				NewWithT(t).Expect(puts).To(Equal(want))
			}
		})
	}
}

func TestANamespaceThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(0, 0)
	sink := &told{}
	v := newView(logr.Discard(), sink, &Options{})
	v.unreadProfiles["a"], v.unreadProfiles["b"] = true, true
	v.advance(now)
	v.putProfile(claim("a", "one", "", 1))
	v.profilesRead("a", now)
	v.putProfile(claim("a", "two", "", 1))
	v.advance(now)
	g.Expect(sink.all).To(Equal([]string{"put one ", "put two "}))
}
