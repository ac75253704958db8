// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	// LabelDecisionRevision tells the slices of one version of a decision from
	// those of another (KEP-5313).
	LabelDecisionRevision = "multicluster.x-k8s.io/decision-revision"

	// DefaultGrace is the default of Placement.Grace.
	DefaultGrace = 10 * time.Second

	// rewriteFactor is how many times longer than Grace a cluster stays while a
	// decision is being rewritten.
	rewriteFactor = 6
)

// Placement names a decision of a scheduler: one or more PlacementDecisions,
// its slices (KEP-5313). Where slices carry a revision, those of the newest
// count.
//
// A cluster joins as soon as a slice names it. It leaves when no slice has named
// it for the time of Grace, so that a slice that is replaced takes no cluster
// away. While the slices show that they are being rewritten (there is none, an
// index is missing between them, or those of an older revision are still there)
// it stays six times as long. Nothing leaves while the hub cannot be read or
// does not serve PlacementDecisions.
type Placement struct {
	// Namespace of the PlacementDecisions. A reference without a namespace means
	// a profile in this one. Required.
	Namespace string

	// DecisionKey is the value of the label multicluster.x-k8s.io/decision-key
	// that all slices have. Either it or Name is required.
	DecisionKey string

	// Name is that of the one PlacementDecision. It serves where a scheduler
	// writes a single slice without a key.
	Name string

	// Grace is how long a cluster stays that is no longer named. Defaults to
	// DefaultGrace.
	Grace time.Duration
}

// String names the decision for logs.
func (p *Placement) String() string {
	return fmt.Sprintf("placement decision %q in namespace %q", cmp.Or(p.DecisionKey, p.Name), p.Namespace)
}

// Validate says what in the placement makes no sense. None, nil, is fine.
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
	if wrong := validation.IsValidLabelValue(p.DecisionKey); len(wrong) > 0 {
		return fmt.Errorf("Placement.DecisionKey %q: %s", p.DecisionKey, wrong[0])
	}
	return nil
}

// selectors has the hub select the slices.
func (p *Placement) selectors() metav1.ListOptions {
	if p.Name != "" {
		return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, p.Name).String()}
	}
	return metav1.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.DecisionKeyLabel: p.DecisionKey}).String()}
}

// decision is what slices say, taken together.
type decision struct {
	clusters map[inventory.Key]bool

	// rewritten is set where the slices show that others are missing or
	// about to go.
	rewritten bool
}

// decisionOf reads the slices of a decision.
func decisionOf(slices map[string]*v1alpha1.PlacementDecision) decision {
	revisions := map[string][]*v1alpha1.PlacementDecision{}
	for _, slice := range slices {
		revision := slice.Labels[LabelDecisionRevision]
		revisions[revision] = append(revisions[revision], slice)
	}
	newest, found := "", false
	for revision := range revisions {
		if !found || newer(revision, newest, revisions) {
			newest, found = revision, true
		}
	}
	d := decision{
		clusters:  map[inventory.Key]bool{},
		rewritten: len(revisions) != 1 || indexMissing(revisions[newest]),
	}
	for _, slice := range revisions[newest] {
		for _, decided := range slice.Decisions {
			ref := decided.ClusterProfileRef
			d.clusters[inventory.Key{Namespace: cmp.Or(ref.Namespace, slice.Namespace), Name: ref.Name}] = true
		}
	}
	return d
}

// newer says whether revision a comes after b. Numbers are in their order. Of
// others, the one is newer of which a slice was written last; a number is newer
// than what is none, and anything is newer than no revision.
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

// indexMissing says whether there is a slice of a higher index than one that is
// missing. Slices without an index say nothing.
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
