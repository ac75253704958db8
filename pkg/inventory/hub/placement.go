// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	// labelRevision is the version of the decision that a slice belongs to
	// (KEP-5313).
	labelRevision = "multicluster.x-k8s.io/decision-revision"

	defaultGrace = 10 * time.Second

	// incompleteFactor is how many times longer the grace is while a decision is
	// incomplete.
	incompleteFactor = 6
)

// Placement names a scheduler's decision: one or more PlacementDecisions, its
// slices (KEP-5313). If slices have a revision, those of the newest count.
//
// A cluster is added when a slice lists it, and removed when no slice has listed it
// for the duration of Grace, so that a slice that is being replaced removes no
// cluster. While the decision is incomplete (no slice exists, an index is missing,
// or slices of an older revision still exist) the grace is six times as long. No
// cluster is removed while the hub cannot be read or does not serve
// PlacementDecisions.
type Placement struct {
	// Namespace of the PlacementDecisions, and of profiles that they refer to
	// without a namespace. Required.
	Namespace string

	// DecisionKey is the value of the label multicluster.x-k8s.io/decision-key of
	// all slices. Either DecisionKey or Name is required.
	DecisionKey string

	// Name is the name of the only PlacementDecision, for schedulers that write
	// one slice without a key.
	Name string

	// Grace is the time until a cluster that is no longer listed is removed.
	// Defaults to 10 s.
	Grace time.Duration
}

// String names the decision for logs.
func (p *Placement) String() string {
	return fmt.Sprintf("placement decision %q in namespace %q", cmp.Or(p.DecisionKey, p.Name), p.Namespace)
}

// Validate returns an error if a field is invalid. A nil Placement is valid.
func (p *Placement) Validate() error {
	switch {
	case p == nil:
		return nil
	case p.Namespace == "":
		return errors.New("must specify Placement.Namespace")
	case (p.DecisionKey == "") == (p.Name == ""):
		return errors.New("must specify either Placement.DecisionKey or Placement.Name")
	case p.Grace < 0:
		return errors.New("Placement.Grace must not be negative")
	}
	if problems := validation.IsValidLabelValue(p.DecisionKey); len(problems) > 0 {
		return fmt.Errorf("Placement.DecisionKey %q: %s", p.DecisionKey, problems[0])
	}
	return nil
}

// selectors select the slices in the hub.
func (p *Placement) selectors() metav1.ListOptions {
	if p.Name != "" {
		return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, p.Name).String()}
	}
	return metav1.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.DecisionKeyLabel: p.DecisionKey}).String()}
}

// decision is the content of all slices.
type decision struct {
	clusters   map[inventory.Key]bool
	incomplete bool // slices are missing, or about to be removed
}

// decisionOf reads the slices of a decision.
func decisionOf(slices map[string]*v1alpha1.PlacementDecision) decision {
	revisions := map[string][]*v1alpha1.PlacementDecision{}
	for _, slice := range slices {
		revision := slice.Labels[labelRevision]
		revisions[revision] = append(revisions[revision], slice)
	}
	newest, found := "", false
	for revision := range revisions {
		if !found || newer(revision, newest, revisions) {
			newest, found = revision, true
		}
	}
	d := decision{
		clusters:   map[inventory.Key]bool{},
		incomplete: len(revisions) != 1 || indexMissing(revisions[newest]),
	}
	for _, slice := range revisions[newest] {
		for _, selected := range slice.Decisions {
			ref := selected.ClusterProfileRef
			d.clusters[inventory.Key{Namespace: cmp.Or(ref.Namespace, slice.Namespace), Name: ref.Name}] = true
		}
	}
	return d
}

// newer reports whether revision a is newer than b. Numbers are compared as such.
// Of others, the one whose slice was written last is newer. A number is newer than
// any other revision, and any revision is newer than none.
func newer(a, b string, revisions map[string][]*v1alpha1.PlacementDecision) bool {
	if a == "" || b == "" {
		return b == ""
	}
	na, errA := strconv.ParseUint(a, 10, 64)
	nb, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return na > nb
	case errA == nil || errB == nil:
		return errA == nil
	}
	if order, err := resourceversion.CompareResourceVersion(lastWrite(revisions[a]), lastWrite(revisions[b])); err == nil && order != 0 {
		return order > 0
	}
	return a > b
}

func lastWrite(slices []*v1alpha1.PlacementDecision) string {
	last := ""
	for _, slice := range slices {
		if order, err := resourceversion.CompareResourceVersion(slice.ResourceVersion, last); last == "" || err == nil && order > 0 {
			last = slice.ResourceVersion
		}
	}
	return last
}

// indexMissing reports whether there is a slice with a higher index than a missing
// one. Slices without an index do not count.
func indexMissing(slices []*v1alpha1.PlacementDecision) bool {
	indexes, highest := map[uint64]bool{}, uint64(0)
	for _, slice := range slices {
		if index, err := strconv.ParseUint(slice.Labels[v1alpha1.DecisionIndexLabel], 10, 32); err == nil {
			indexes[index] = true
			highest = max(highest, index)
		}
	}
	return len(indexes) > 0 && uint64(len(indexes)) != highest+1
}

// selected is the set of clusters that a placement selects: those of the current
// decision, and those of earlier ones until their grace ends.
type selected struct {
	placement   *Placement
	slices      map[string]*v1alpha1.PlacementDecision
	listed      bool // the first list is complete
	unavailable bool // decisions cannot be read at the moment

	decision decision
	leaving  map[inventory.Key]time.Time // since when a cluster is no longer in the decision
	logged   string
}

func newSelected(placement *Placement) *selected {
	return &selected{
		placement: placement,
		slices:    map[string]*v1alpha1.PlacementDecision{},
		leaving:   map[inventory.Key]time.Time{},
	}
}

func (s *selected) has(key inventory.Key) bool {
	_, leaving := s.leaving[key]
	return leaving || s.decision.clusters[key]
}

// setAvailable records whether decisions can be read. Each grace starts again after
// an outage, as changes during it are not known yet.
func (s *selected) setAvailable(available bool, now time.Time) {
	if available && s.unavailable {
		for key := range s.leaving {
			s.leaving[key] = now
		}
	}
	s.unavailable = !available
}

// decide reads the slices again. It returns the clusters that are added.
func (s *selected) decide(now time.Time) (added []inventory.Key) {
	before := s.decision.clusters
	s.decision = decisionOf(s.slices)
	for key := range before {
		if !s.decision.clusters[key] {
			s.leaving[key] = now
		}
	}
	for key := range s.decision.clusters {
		if _, leaving := s.leaving[key]; !leaving && !before[key] {
			added = append(added, key)
		}
		delete(s.leaving, key)
	}
	return added
}

// expire returns the clusters whose grace has ended.
func (s *selected) expire(now time.Time) (removed []inventory.Key) {
	if s.unavailable {
		return nil
	}
	for key, since := range s.leaving {
		if !now.Before(since.Add(s.grace())) {
			delete(s.leaving, key)
			removed = append(removed, key)
		}
	}
	return removed
}

// nextExpiry returns when the next grace ends.
func (s *selected) nextExpiry() (at time.Time, ok bool) {
	if s.unavailable {
		return time.Time{}, false
	}
	for _, since := range s.leaving {
		if end := since.Add(s.grace()); !ok || end.Before(at) {
			at, ok = end, true
		}
	}
	return at, ok
}

func (s *selected) grace() time.Duration {
	grace := cmp.Or(s.placement.Grace, defaultGrace)
	if s.decision.incomplete {
		grace *= incompleteFactor
	}
	return grace
}

// logState logs whether there is a decision, if that has changed.
func (s *selected) logState(log logr.Logger) {
	state := "Placement decision found"
	if len(s.slices) == 0 {
		state = "No placement decision found, removing its clusters unless one appears"
		log = log.WithValues("removedAfter", s.grace().String())
	}
	if state != s.logged {
		s.logged = state
		log.Info(state, "placement", s.placement.String())
	}
}
