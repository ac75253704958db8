// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// view is what a run of the source knows of the hub, and what follows for the
// sink. It belongs to the reader's loop.
//
// Nothing is told before it is known which ClusterSets the namespaces are in
// and which clusters have been decided on: what is engaged already must not be
// told of in a lesser form first. Nor is a profile told of before those listed
// with it: who comes to a cluster name first has it.
type view struct {
	log   logr.Logger
	sink  inventory.Sink
	trust bool // annotations

	unreadProfiles   map[string]bool // by namespace
	unreadNamespaces map[string]bool // by namespace
	profilesSince    time.Time       // when all profiles had been read
	open             bool            // the sink is told of profiles
	synced           bool            // the sink has been told so
	refused          bool            // namespaces may not be read, which has been logged

	profiles  map[inventory.Key]*inventory.Profile
	told      map[inventory.Key]bool
	sets      map[string]string // the ClusterSet of each namespace
	placement *placed           // nil without a placement
}

func newView(log logr.Logger, sink inventory.Sink, options *Options) *view {
	v := &view{
		log: log, sink: sink, trust: options.TrustAnnotations,
		unreadProfiles: map[string]bool{}, unreadNamespaces: map[string]bool{},
		profiles: map[inventory.Key]*inventory.Profile{},
		told:     map[inventory.Key]bool{},
		sets:     map[string]string{},
	}
	if options.Placement != nil {
		v.placement = newPlaced(options.Placement)
	}
	return v
}

func (v *view) putProfile(profile *inventory.Profile) {
	key := inventory.KeyOf(profile)
	v.profiles[key] = profile
	v.tell(key)
}

func (v *view) removeProfile(key inventory.Key) {
	delete(v.profiles, key)
	v.tell(key)
}

func (v *view) profilesRead(namespace string, now time.Time) {
	delete(v.unreadProfiles, namespace)
	if len(v.unreadProfiles) == 0 {
		v.profilesSince = now
	}
	v.tellAll(func(key inventory.Key) bool { return namespace == "" || key.Namespace == namespace })
}

// putNamespace notes the ClusterSet of a namespace, "" where it has none.
func (v *view) putNamespace(namespace, set string) {
	if v.sets[namespace] == set {
		return
	}
	if set == "" {
		delete(v.sets, namespace)
	} else {
		v.sets[namespace] = set
	}
	for key := range v.profiles {
		if key.Namespace == namespace {
			v.tell(key)
		}
	}
}

func (v *view) namespacesRead(namespace string) {
	delete(v.unreadNamespaces, namespace)
}

func (v *view) namespacesRefused(namespace string, err error) {
	delete(v.unreadNamespaces, namespace)
	if !v.refused {
		v.refused = true
		v.log.Info("Not allowed to list and watch namespaces in the hub; ClusterSets that only a namespace's label names are not known",
			"error", err.Error())
	}
}

func (v *view) putSlice(slice *v1alpha1.PlacementDecision, now time.Time) {
	v.placement.slices[slice.Name] = slice
	v.decide(now)
}

func (v *view) removeSlice(name string, now time.Time) {
	delete(v.placement.slices, name)
	v.decide(now)
}

func (v *view) placementRead(now time.Time) {
	v.placement.read = true
	v.decide(now)
	v.placement.logState(v.log)
}

// placementAnswered notes whether decisions can be read.
func (v *view) placementAnswered(ok bool, now time.Time) {
	v.placement.answered(ok, now)
}

func (v *view) decide(now time.Time) {
	if !v.placement.read {
		return
	}
	joined := map[inventory.Key]bool{}
	for _, key := range v.placement.decide(now) {
		joined[key] = true
	}
	v.tellAll(func(key inventory.Key) bool { return joined[key] })
	if len(joined) > 0 {
		v.placement.logState(v.log)
	}
}

// advance does what has become due, and says when something will next.
func (v *view) advance(now time.Time) (next time.Time, ok bool) {
	due := v.profilesSince.Add(namespaceLimit)
	waitsForNamespaces := len(v.unreadNamespaces) > 0 && len(v.unreadProfiles) == 0 && !v.open
	if waitsForNamespaces && !now.Before(due) {
		v.log.Info("The hub does not answer the request for namespaces, going on without their labels")
		clear(v.unreadNamespaces)
	}
	if !v.open && len(v.unreadNamespaces) == 0 && (v.placement == nil || v.placement.read) {
		v.open = true
		v.tellAll(func(inventory.Key) bool { return true })
	}
	if v.open && !v.synced && len(v.unreadProfiles) == 0 {
		v.synced = true
		v.sink.Synced()
	}
	if waitsForNamespaces && len(v.unreadNamespaces) > 0 {
		next, ok = due, true
	}
	if v.placement == nil {
		return next, ok
	}
	for _, key := range v.placement.expire(now) {
		v.tell(key)
	}
	if expiry, lingers := v.placement.next(); lingers && (!ok || expiry.Before(next)) {
		next, ok = expiry, true
	}
	return next, ok
}

// tellAll brings the sink up to date on the profiles of these keys, in the
// order of their claims to names.
func (v *view) tellAll(these func(inventory.Key) bool) {
	if !v.open {
		return
	}
	var profiles []*inventory.Profile
	for key, profile := range v.profiles {
		if these(key) {
			profiles = append(profiles, v.conveyed(profile))
		}
	}
	slices.SortFunc(profiles, inventory.CompareClaims)
	for _, profile := range profiles {
		v.tell(inventory.KeyOf(profile))
	}
}

// tell brings the sink up to date on a profile.
func (v *view) tell(key inventory.Key) {
	if !v.open || v.unreadProfiles[""] || v.unreadProfiles[key.Namespace] {
		return
	}
	profile := v.profiles[key]
	if profile != nil && (v.placement == nil || v.placement.has(key)) {
		v.told[key] = true
		v.sink.Put(v.conveyed(profile))
		return
	}
	if v.told[key] {
		delete(v.told, key)
		v.sink.Remove(key)
	}
}

// conveyed returns the profile with what else is known of it, and without what
// it has no right to say: of its namespace, and of names.
func (v *view) conveyed(profile *inventory.Profile) *inventory.Profile {
	if !v.trust {
		for _, annotation := range []string{
			inventory.AnnotationClusterName, inventory.AnnotationRenamedFrom, inventory.AnnotationAlternates,
		} {
			profile = inventory.WithAnnotation(profile, annotation, "")
		}
	}
	return inventory.WithAnnotation(profile, inventory.AnnotationNamespaceClusterSet, v.sets[profile.Namespace])
}
