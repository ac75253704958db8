// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// slice returns a slice of a decision on these clusters.
func slice(revision, index, version, clusters string) *v1alpha1.PlacementDecision {
	s := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "slice-" + revision + "-" + index, ResourceVersion: version, Labels: map[string]string{},
	}}
	if revision != "" {
		s.Labels[labelRevision] = revision
	}
	if index != "" {
		s.Labels[v1alpha1.DecisionIndexLabel] = index
	}
	for name := range strings.FieldsSeq(clusters) {
		namespace := ""
		if before, after, ok := strings.Cut(name, "/"); ok {
			namespace, name = before, after
		}
		s.Decisions = append(s.Decisions, v1alpha1.ClusterDecision{
			ClusterProfileRef: v1alpha1.ClusterProfileReference{Namespace: namespace, Name: name},
		})
	}
	return s
}

func TestDecisionOfNewestRevision(t *testing.T) {
	for _, tc := range []struct {
		name       string
		slices     []*v1alpha1.PlacementDecision
		want       string
		incomplete bool
	}{
		{"no slice", nil, "", true},
		{"one slice, of no cluster", []*v1alpha1.PlacementDecision{slice("", "", "1", "")}, "", false},
		{"a reference without a namespace",
			[]*v1alpha1.PlacementDecision{slice("", "", "1", "a other/b")}, "fleet/a other/b", false},
		{"several slices are one decision",
			[]*v1alpha1.PlacementDecision{slice("", "0", "1", "a b"), slice("", "1", "2", "b c")}, "fleet/a fleet/b fleet/c", false},
		{"an index is missing",
			[]*v1alpha1.PlacementDecision{slice("", "0", "1", "a"), slice("", "2", "2", "c")}, "fleet/a fleet/c", true},
		{"the first index is missing",
			[]*v1alpha1.PlacementDecision{slice("", "1", "2", "b")}, "fleet/b", true},
		{"numeric revisions",
			[]*v1alpha1.PlacementDecision{slice("9", "0", "7", "old"), slice("10", "0", "3", "new")}, "fleet/new", true},
		{"other revisions, by their last write",
			[]*v1alpha1.PlacementDecision{slice("b", "0", "7", "old"), slice("a", "0", "12", "new")}, "fleet/new", true},
		{"a number is newer than another revision",
			[]*v1alpha1.PlacementDecision{slice("x", "0", "7", "old"), slice("1", "0", "3", "new")}, "fleet/new", true},
		{"any revision is newer than none",
			[]*v1alpha1.PlacementDecision{slice("", "0", "7", "old"), slice("a", "0", "3", "new")}, "fleet/new", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			all := map[string]*v1alpha1.PlacementDecision{}
			for _, s := range tc.slices {
				all[s.Name] = s
			}
			d := decisionOf(all)
			g.Expect(clustersOf(d)).To(Equal(tc.want))
			g.Expect(d.incomplete).To(Equal(tc.incomplete))
		})
	}
}

func clustersOf(d decision) string {
	var names []string
	for key := range d.clusters {
		names = append(names, key.String())
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// history is a placement with a clock.
type history struct {
	*selected
	now time.Time
}

func newHistory() *history {
	h := &history{selected: newSelected(&Placement{Namespace: "fleet", DecisionKey: "x"}), now: time.Unix(0, 0)}
	h.listed = true
	return h
}

func (h *history) put(slices ...*v1alpha1.PlacementDecision) {
	for _, s := range slices {
		h.slices[s.Name] = s
		h.decide(h.now)
	}
}

func (h *history) remove(s *v1alpha1.PlacementDecision) {
	delete(h.slices, s.Name)
	h.decide(h.now)
}

// after advances the clock and returns the clusters.
func (h *history) after(d time.Duration) string {
	h.now = h.now.Add(d)
	h.expire(h.now)
	var names []string
	for _, name := range []string{"a", "b", "c", "d"} {
		if h.has(inventory.Key{Namespace: "fleet", Name: name}) {
			names = append(names, name)
		}
	}
	return fmt.Sprint(names)
}

func TestGrace(t *testing.T) {
	g := NewWithT(t)
	h := newHistory()
	h.put(slice("", "0", "1", "a b"))
	h.put(slice("", "0", "2", "a c"))
	g.Expect(h.after(0)).To(Equal("[a b c]"), "clusters are added immediately")
	g.Expect(defaultGrace).To(Equal(10*time.Second), "as documented")
	next, ok := h.nextExpiry()
	g.Expect(ok).To(BeTrue())
	g.Expect(next).To(Equal(h.now.Add(defaultGrace)))
	g.Expect(h.after(defaultGrace - 1)).To(Equal("[a b c]"))
	g.Expect(h.after(1)).To(Equal("[a c]"))
	_, ok = h.nextExpiry()
	g.Expect(ok).To(BeFalse())
}

func TestGraceWhileSlicesAreMissing(t *testing.T) {
	g := NewWithT(t)
	h := newHistory()
	first, second := slice("", "0", "1", "a"), slice("", "1", "2", "b")
	h.put(first, second)
	h.remove(first)
	g.Expect(h.after(5*defaultGrace)).To(Equal("[a b]"), "an index is missing")
	h.put(first)
	g.Expect(h.after(time.Hour)).To(Equal("[a b]"))

	h.remove(first)
	h.remove(second)
	g.Expect(h.after(time.Minute-1)).To(Equal("[a b]"), "no slice exists")
	g.Expect(h.after(1)).To(Equal("[]"), "the grace has ended")
}

func TestGraceBetweenRevisions(t *testing.T) {
	g := NewWithT(t)
	h := newHistory()
	h.put(slice("1", "0", "1", "a"), slice("1", "1", "2", "b"))
	h.put(slice("2", "0", "3", "c"))
	g.Expect(h.after(5 * defaultGrace)).To(Equal("[a b c]"))
	h.put(slice("2", "1", "4", "b"))
	h.remove(slice("1", "0", "", ""))
	h.remove(slice("1", "1", "", ""))
	g.Expect(h.after(0)).To(Equal("[b c]"))
}

func TestGraceDuringOutage(t *testing.T) {
	g := NewWithT(t)
	h := newHistory()
	s := slice("", "", "1", "a")
	h.put(s)
	h.remove(s)
	h.setAvailable(false, h.now)
	g.Expect(h.after(time.Hour)).To(Equal("[a]"))
	_, ok := h.nextExpiry()
	g.Expect(ok).To(BeFalse())
	h.setAvailable(true, h.now)
	g.Expect(h.after(incompleteFactor*defaultGrace-1)).To(Equal("[a]"), "changes during the outage are not known yet")
	g.Expect(h.after(1)).To(Equal("[]"))
}

func TestInvalidPlacement(t *testing.T) {
	for _, tc := range []struct {
		name      string
		placement Placement
		want      string
	}{
		{"no namespace", Placement{DecisionKey: "x"}, "Placement.Namespace"},
		{"no decision", Placement{Namespace: "fleet"}, "either"},
		{"two decisions", Placement{Namespace: "fleet", DecisionKey: "x", Name: "y"}, "either"},
		{"a key that is not a label value", Placement{Namespace: "fleet", DecisionKey: "a b"}, "DecisionKey"},
		{"a negative grace", Placement{Namespace: "fleet", Name: "y", Grace: -1}, "Grace"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(tc.placement.Validate()).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}
