// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

var (
	deployment = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	widget     = schema.GroupKind{Group: "example.com", Kind: "Widget"}
	gadget     = schema.GroupKind{Group: "example.com", Kind: "Gadget"}
	served     = fakeVersion{name: "v1", resources: []metav1.APIResource{resource("widgets", "Widget")}}
	noMatch    = Satisfy(meta.IsNoMatchError)
)

// has looks up a kind, and returns the error.
func has(m *Mapper, kind schema.GroupKind, versions ...string) error {
	_, err := m.RESTMapping(kind, versions...)
	return err
}

func TestRequestsPerLookup(t *testing.T) {
	both := map[string]int{"/api": 1, "/apis": 1}
	for _, test := range []struct {
		name   string
		old    bool
		lookup func(m *Mapper) error
		want   map[string]int
	}{
		{"nothing before the first lookup", false, func(*Mapper) error { return nil }, nil},
		{"two requests for all groups", false, func(m *Mapper) error {
			_, err := m.KindFor(schema.GroupVersionResource{Resource: "pods"})
			return errors.Join(err, has(m, deployment), has(m, schema.GroupKind{Group: "autoscaling", Kind: "Scale"}))
		}, both},
		{"old server, one group", true, func(m *Mapper) error { return has(m, deployment) },
			map[string]int{"/api": 1, "/apis": 1, "/apis/apps/v1": 1}},
		{"old server, one version", true, func(m *Mapper) error {
			return has(m, schema.GroupKind{Group: "autoscaling", Kind: "Scale"}, "v1")
		}, map[string]int{"/api": 1, "/apis": 1, "/apis/autoscaling/v1": 1}},
		{"old server, no request is repeated", true, func(m *Mapper) error {
			return errors.Join(has(m, deployment), has(m, deployment, "v1"), has(m, schema.GroupKind{Kind: "Pod"}))
		}, map[string]int{"/api": 1, "/apis": 1, "/apis/apps/v1": 1, "/api/v1": 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			s := kubernetes(test.old)
			g.Expect(test.lookup(s.mapper(t, &store{}))).To(Succeed())
			g.Expect(s.takeRequests()).To(Equal(test.want))
		})
	}
}

func TestServerOrderWins(t *testing.T) {
	for _, old := range []bool{false, true} {
		g := NewWithT(t)
		s := kubernetes(old)
		for range 20 {
			m := s.mapper(t, &store{})
			mapping, err := m.RESTMapping(schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mapping.Resource.Version).To(Equal("v2"), "the preferred version")
			g.Expect(m.KindFor(schema.GroupVersionResource{Resource: "events"})).To(Equal(schema.GroupVersionKind{Version: "v1", Kind: "Event"}))
		}
	}
}

func TestLastOfEqualKindsWins(t *testing.T) {
	g := NewWithT(t)
	s := kubernetes(false)
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		s.set("metrics", fakeVersion{name: "v1", resources: []metav1.APIResource{resource(order[0], "Value"), resource(order[1], "Value")}})
		mapping, err := s.mapper(t, &store{}).RESTMapping(schema.GroupKind{Group: "metrics", Kind: "Value"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(mapping.Resource.Resource).To(Equal(order[1]))
	}
}

func TestNewKindIsFoundAtOnce(t *testing.T) {
	for name, lookup := range map[string]func(m *Mapper) error{
		"RESTMapping":           func(m *Mapper) error { return has(m, widget) },
		"RESTMapping, versions": func(m *Mapper) error { return has(m, widget, "v1", "v2") },
		"RESTMappings":          func(m *Mapper) error { _, err := m.RESTMappings(widget); return err },
		"KindFor": func(m *Mapper) error {
			_, err := m.KindFor(schema.GroupVersionResource{Group: "example.com", Resource: "widgets"})
			return err
		},
		"KindsFor": func(m *Mapper) error {
			_, err := m.KindsFor(schema.GroupVersionResource{Resource: "widgets", Version: "v1"})
			return err
		},
		"ResourceFor": func(m *Mapper) error {
			_, err := m.ResourceFor(schema.GroupVersionResource{Resource: "widget"})
			return err
		},
		"ResourcesFor": func(m *Mapper) error {
			_, err := m.ResourcesFor(schema.GroupVersionResource{Group: "example", Resource: "widget"})
			return err
		},
		"ResourceSingularizer": func(m *Mapper) error { _, err := m.ResourceSingularizer("widgets"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := kubernetes(false)
			m := s.mapper(t, &store{})
			g.Expect(lookup(m)).To(noMatch)
			s.set("example.com", served)
			g.Expect(lookup(m)).To(Succeed())
			s.takeRequests()
			g.Expect(lookup(m)).To(Succeed())
			g.Expect(s.takeRequests()).To(BeEmpty())
		})
	}
	t.Run("old server, known group", func(t *testing.T) {
		g := NewWithT(t)
		s := kubernetes(true)
		s.set("example.com", served)
		m := s.mapper(t, &store{})
		g.Expect(has(m, widget)).To(Succeed())
		g.Expect(has(m, gadget)).To(noMatch)
		s.set("example.com", fakeVersion{name: "v1", resources: append([]metav1.APIResource{resource("gadgets", "Gadget")}, served.resources...)})
		g.Expect(has(m, gadget)).To(Succeed())
	})
}

func TestMissingKindRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := kubernetes(false)
		m := s.mapper(t, &store{})
		g.Expect(has(m, deployment)).To(Succeed())
		s.takeRequests()
		for range 100 {
			g.Expect(has(m, widget)).To(noMatch)
		}
		g.Expect(s.takeRequests()).To(HaveKeyWithValue("/apis", burst))

		g.Expect(has(m, gadget)).To(noMatch)
		g.Expect(s.takeRequests()).To(HaveKeyWithValue("/apis", 1), "another lookup")

		for range 3 {
			wait(pause)
			for range 100 {
				g.Expect(has(m, widget)).To(noMatch)
			}
			g.Expect(s.takeRequests()).To(HaveKeyWithValue("/apis", 1))
		}
		wait(10 * pause)
		g.Expect(has(m, gadget)).To(noMatch)
		g.Expect(m.allowedAt).To(HaveLen(1), "old entries are removed")
	})
}

func TestRemovedKind(t *testing.T) {
	for _, old := range []bool{false, true} {
		g := NewWithT(t)
		s := kubernetes(old)
		s.set("example.com", served)
		m := s.mapper(t, &store{})
		g.Expect(has(m, widget)).To(Succeed())
		s.remove("example.com")
		g.Expect(has(m, widget)).To(Succeed())
		g.Expect(has(m, gadget)).To(noMatch)
		g.Expect(has(m, widget)).To(noMatch)
		g.Expect(m.known.Load().extra).NotTo(HaveKey(schema.GroupVersion{Group: "example.com", Version: "v1"}))
	}
}

func TestServerError(t *testing.T) {
	g := NewWithT(t)
	s := kubernetes(false)
	m := s.mapper(t, &store{})
	s.setFault(http.StatusForbidden)
	g.Expect(has(m, deployment)).To(And(Satisfy(apierrors.IsForbidden), Not(noMatch)))
	singular, err := m.ResourceSingularizer("pods")
	g.Expect(err).To(Satisfy(apierrors.IsForbidden))
	g.Expect(singular).To(Equal("pods"))
	s.setFault(0)
	g.Expect(has(m, deployment)).To(Succeed())
	s.setFault(http.StatusForbidden)
	g.Expect(has(m, deployment)).To(Succeed(), "known kinds need no request")
	g.Expect(has(m, widget)).To(Satisfy(apierrors.IsForbidden))

	empty := &server{}
	g.Expect(has(empty.mapper(t, &store{}), widget)).To(MatchError(ContainSubstring("lists no API groups")))
}

func TestUnavailableAggregatedAPI(t *testing.T) {
	stale := served
	stale.stale = true
	for _, old := range []bool{false, true} {
		g := NewWithT(t)
		s := kubernetes(old)
		s.set("example.com", stale)
		m := s.mapper(t, &store{})
		g.Expect(has(m, deployment)).To(Succeed())
		for _, err := range []error{has(m, widget), has(m, widget, "v1")} {
			var failed *apiutil.ErrResourceDiscoveryFailed
			g.Expect(errors.As(err, &failed)).To(BeTrue(), "%v", err)
			g.Expect(*failed).To(HaveKeyWithValue(schema.GroupVersion{Group: "example.com", Version: "v1"}, Satisfy(apierrors.IsServiceUnavailable)))
			g.Expect(err).NotTo(noMatch)
		}
		g.Expect(has(m, widget, "v2")).To(noMatch, "a version that does not exist")
		g.Expect(has(m, schema.GroupKind{Group: "apps", Kind: "Other"})).To(noMatch)

		s.set("example.com", served)
		g.Expect(has(m, widget)).To(Succeed())

		s.set("example.com", stale)
		g.Expect(has(m, schema.GroupKind{Group: "apps", Kind: "YetOther"})).To(noMatch)
		g.Expect(has(m, widget)).To(Succeed(), "known kinds stay known")
		g.Expect(has(m, gadget)).NotTo(Or(Succeed(), noMatch))
		g.Expect(has(m, widget)).To(Succeed())
	}
}
