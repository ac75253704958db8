// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// placedHub is a fake hub with a decision, whose source runs.
type placedHub struct {
	*fakeHub
	t      *testing.T
	source *Source
	stop   func()

	mu    sync.Mutex // guards lines
	lines []string
}

// newPlacedHub reads a decision on these clusters.
func newPlacedHub(t *testing.T, clusters string, objects ...runtime.Object) *placedHub {
	t.Helper()
	h := &placedHub{fakeHub: newFakeHub(t, append(objects, decisionOn(clusters))...), t: t}
	h.source = h.fakeHub.source(Options{Placement: &Placement{Namespace: "fleet", DecisionKey: "x"}})
	logger := funcr.New(func(_, args string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lines = append(h.lines, args)
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(log.IntoContext(t.Context(), logger))
	ended := make(chan error)
	go func() { ended <- h.source.Run(ctx, &nameStore{profiles: map[string]*inventory.Profile{}}) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(h.stop)
	synctest.Wait()
	return h
}

func decisionOn(clusters string) *v1alpha1.PlacementDecision {
	s := slice("", "", "1", clusters)
	s.Name = "decision"
	s.Labels[v1alpha1.DecisionKeyLabel] = "x"
	return s
}

func (h *placedHub) decide(clusters string) {
	h.t.Helper()
	if _, err := h.ApisV1alpha1().PlacementDecisions("fleet").Update(h.t.Context(), decisionOn(clusters), metav1.UpdateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *placedHub) create(name string) {
	h.t.Helper()
	if _, err := h.ApisV1alpha1().ClusterProfiles("fleet").Create(h.t.Context(), named("fleet", name, "", 1), metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *placedHub) delete(name string) {
	h.t.Helper()
	if err := h.ApisV1alpha1().ClusterProfiles("fleet").Delete(h.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// after waits and returns the names of the missing profiles.
func (h *placedHub) after(d time.Duration) string {
	time.Sleep(d)
	synctest.Wait()
	var names []string
	for _, key := range h.source.PlacementStatus().MissingProfiles {
		names = append(names, key.Name)
	}
	return strings.Join(names, " ")
}

// logged returns how often missing profiles have been logged, and their end.
func (h *placedHub) logged() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := strings.Join(h.lines, "\n")
	return fmt.Sprint(strings.Count(all, "names profiles that do not exist"), " ", strings.Count(all, "placement decision names exist"))
}

// metric returns the value of the metric for the placement.
func metric(g Gomega) float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() == "rollcall_inventory_placement_missing_profiles" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

func TestMissingProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h := newPlacedHub(t, "a b c", named("fleet", "a", "", 1))
		g.Expect(h.after(missingGrace - 1)).To(BeEmpty())
		g.Expect(h.after(1)).To(Equal("b c"))
		g.Expect(h.logged()).To(Equal("1 0"))
		g.Expect(metric(g)).To(Equal(2.0))

		for range 10 {
			h.decide("a b c")
		}
		g.Expect(h.after(time.Hour)).To(Equal("b c"))
		g.Expect(h.logged()).To(Equal("1 0"), "not for each event")

		h.create("b")
		g.Expect(h.after(0)).To(Equal("c"))
		h.decide("a b")
		g.Expect(h.after(0)).To(BeEmpty())
		g.Expect(h.after(missingLogInterval)).To(BeEmpty())
		g.Expect(h.logged()).To(Equal("2 1"))

		h.delete("a")
		g.Expect(h.after(missingGrace)).To(Equal("a"), "deleted while the decision names it")
		g.Expect(metric(g)).To(Equal(1.0))
		h.stop()
		g.Expect(h.source.PlacementStatus()).To(Equal(PlacementStatus{}))
		g.Expect(metric(g)).To(BeZero())
	})
}

func TestManyMissingProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var names []string
		for i := range 50 {
			names = append(names, fmt.Sprintf("c%02d", i))
		}
		h := newPlacedHub(t, strings.Join(names, " "))
		g.Expect(h.after(missingGrace)).To(Equal(strings.Join(names[:maxMissing], " ")))
		g.Expect(h.source.PlacementStatus().Missing).To(Equal(50))
		for _, name := range names {
			h.create(name)
			h.after(time.Second)
		}
		g.Expect(h.after(2 * missingLogInterval)).To(BeEmpty())
		g.Expect(h.logged()).To(Equal("1 1"), "at most one line in a minute")
	})
}

func TestProfileAfterItsDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h := newPlacedHub(t, "a", named("fleet", "a", "", 1))
		h.decide("a b")
		g.Expect(h.after(missingGrace - 1)).To(BeEmpty())
		h.create("b")
		g.Expect(h.after(time.Hour)).To(BeEmpty())
		g.Expect(h.logged()).To(Equal("0 0"))
	})
}

// A profile that cannot be listed is not missing.
func TestMissingWaitsForProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var outage atomic.Bool
		outage.Store(true)
		h := &placedHub{}
		hub := newFakeHub(t, named("fleet", "a", "", 1), decisionOn("a"))
		hub.PrependReactor("list", profileResource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return outage.Load(), nil, errors.New("outage")
		})
		source := hub.source(Options{Placement: &Placement{Namespace: "fleet", DecisionKey: "x"}})
		h.source, h.t = source, t
		read(t, source)
		g.Expect(h.after(time.Hour)).To(BeEmpty())
		outage.Store(false)
		g.Expect(h.after(time.Hour)).To(BeEmpty())
	})
}

// A decision may name profiles that an outage keeps from being read.
func TestMissingDuringOutage(t *testing.T) {
	g := NewWithT(t)
	v := &view{unavailable: map[string]bool{}, synced: true, open: true, sink: &nameStore{}, profiles: map[inventory.Key]*inventory.Profile{}, placement: newSelected(&Placement{})}
	var status PlacementStatus
	v.missing = newMissing(&Options{Placement: &Placement{}}, func(s PlacementStatus) { status = s })
	key := inventory.Key{Namespace: "fleet", Name: "a"}
	v.placement.listed = true
	v.placement.decision.clusters = map[inventory.Key]bool{key: true}
	v.profilesChanged()

	now := time.Unix(0, 0)
	v.advance(now)
	v.setAvailable("", false, now)
	v.advance(now.Add(time.Hour))
	g.Expect(status.Missing).To(BeZero())
	now = now.Add(2 * time.Hour)
	v.setAvailable("", true, now)
	next, ok := v.advance(now)
	g.Expect(status.Missing).To(BeZero(), "the grace starts again")
	g.Expect(ok).To(BeTrue())
	g.Expect(next).To(Equal(now.Add(missingGrace)))
	v.advance(next)
	g.Expect(status).To(Equal(PlacementStatus{Missing: 1, MissingProfiles: []inventory.Key{key}}))
}
