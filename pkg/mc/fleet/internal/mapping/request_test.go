// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// wait waits in the time of a synctest bubble.
func wait(d time.Duration) { <-time.After(d) }

// concurrently starts n lookups of a kind, and returns a function that waits for
// their errors.
func concurrently(n int, m *Mapper, kind schema.GroupKind) func() []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = has(m, kind) })
	}
	return func() []error {
		all.Wait()
		return errs
	}
}

func TestLookupsShareOneRequest(t *testing.T) {
	for _, old := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			s := kubernetes(old)
			s.set("example.com", served)
			m := s.mapper(t, &store{})
			release := make(chan struct{})
			s.setHold(func(string) { <-release })

			errs := concurrently(100, m, widget)
			synctest.Wait()
			g.Expect(s.takeRequests()).To(Equal(map[string]int{"/api": 1, "/apis": 1}))
			close(release)
			g.Expect(errs()).To(HaveEach(BeNil()))
			if old {
				g.Expect(s.takeRequests()).To(Equal(map[string]int{"/apis/example.com/v1": 1}))
			} else {
				g.Expect(s.takeRequests()).To(BeEmpty())
			}
		})
	}
}

func TestKnownKindsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := kubernetes(false)
		m := s.mapper(t, &store{})
		g.Expect(has(m, deployment)).To(Succeed())
		release := make(chan struct{})
		s.setHold(func(string) { <-release })
		s.takeRequests()

		waiting := concurrently(100, m, widget)
		synctest.Wait()
		g.Expect(concurrently(100, m, deployment)()).To(HaveEach(BeNil()))
		close(release)
		g.Expect(waiting()).To(HaveEach(noMatch))
		g.Expect(s.takeRequests()["/apis"]).To(BeNumerically("<=", burst))
	})
}

func TestEarlierRequestIsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := kubernetes(false)
		m := s.mapper(t, &store{})
		g.Expect(has(m, deployment)).To(Succeed())
		release := make(chan struct{})
		s.setHold(func(string) { <-release })

		early := concurrently(1, m, gadget)
		synctest.Wait() // Both responses are without the group.
		s.set("example.com", served)
		late := concurrently(10, m, widget)
		synctest.Wait()
		close(release)
		g.Expect(early()).To(HaveEach(noMatch))
		g.Expect(late()).To(HaveEach(BeNil()))
	})
}

func TestRequestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := kubernetes(false)
		m := s.mapper(t, &store{})
		s.setHold(func(string) { wait(2 * requestTimeout) })
		began := time.Now()
		g.Expect(concurrently(10, m, deployment)()).To(HaveEach(MatchError(ContainSubstring("cannot discover the API groups"))))
		g.Expect(time.Since(began)).To(BeNumerically("<=", 2*requestTimeout))
		s.setHold(nil)
		g.Expect(has(m, deployment)).To(Succeed())
	})
}

func TestPanicInTransport(t *testing.T) {
	g := NewWithT(t)
	s := kubernetes(true)
	m := s.mapper(t, &store{})
	g.Expect(has(m, schema.GroupKind{Kind: "Pod"})).To(Succeed())
	s.setHold(func(string) { panic("panic of a transport") })
	g.Expect(func() { _ = has(m, deployment) }).To(Panic())
	s.setHold(nil)
	g.Expect(has(m, deployment)).To(Succeed())
}

func TestConcurrentChanges(t *testing.T) {
	shared := &store{}
	kinds := []schema.GroupKind{deployment, widget, gadget, {Kind: "Pod"}, {Group: "autoscaling", Kind: "Scale"}}
	var all sync.WaitGroup
	for i := range 4 {
		s := kubernetes(i%2 == 1)
		m := s.mapper(t, shared)
		all.Go(func() {
			for n := range 50 {
				s.set("example.com", fakeVersion{
					name: "v1", stale: n%5 == 4,
					resources: []metav1.APIResource{resource("widgets", "Widget"), resource("gadgets", "Gadget")}[:1+n%2],
				})
				if n%7 == 6 {
					s.remove("example.com")
				}
			}
		})
		for _, kind := range kinds {
			all.Go(func() {
				for range 50 {
					_ = has(m, kind)
					_, _ = m.KindsFor(schema.GroupVersionResource{Resource: "widgets"})
				}
			})
		}
	}
	all.Wait()
}
