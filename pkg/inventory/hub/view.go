// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/internal/metadata"
)

// namespaceTimeout is how long profiles wait for the labels of their namespaces.
const namespaceTimeout = 10 * time.Second

// maxAliasManagers bounds what authors of profiles can make the source log and keep.
const maxAliasManagers = 100

// view is what one run of the source has read from the hub and sent to the sink.
// Only the reader's loop uses it.
//
// It sends nothing before the ClusterSets of namespaces and the placement are
// known, as engaged clusters must not change because of a partial view. Profiles
// that are listed together are sent in their order of precedence, as the first
// one gets a cluster name.
type view struct {
	log   logr.Logger
	sink  inventory.Sink
	trust bool // annotations

	unreadProfiles   map[string]bool // by namespace
	unreadNamespaces map[string]bool // by namespace
	profilesReadAt   time.Time
	open             bool            // profiles are sent
	synced           bool            // the sink is synced
	forbidden        bool            // namespaces may not be read, which has been logged
	unavailable      map[string]bool // namespaces whose profiles cannot be read at the moment
	aliasManagers    map[string]bool // cluster managers whose use of an alias has been logged

	profiles  map[inventory.Key]*inventory.Profile
	sent      map[inventory.Key]bool
	sets      map[string]string // the ClusterSet of each namespace
	placement *selected         // nil without a placement
	missing   *missing          // nil without a placement

	// handover has the profiles that the informer of another version has in an older
	// state, or, if nil, not at all; see beginHandover.
	handover      map[inventory.Key]*inventory.Profile
	handoverRound map[string]int // by namespace
}

func newView(log logr.Logger, sink inventory.Sink, options *Options) *view {
	v := &view{
		log: log, sink: sink, trust: options.TrustAnnotations,
		unreadProfiles: map[string]bool{}, unreadNamespaces: map[string]bool{},
		unavailable: map[string]bool{}, aliasManagers: map[string]bool{},
		profiles: map[inventory.Key]*inventory.Profile{},
		sent:     map[inventory.Key]bool{},
		sets:     map[string]string{},
	}
	if options.Placement != nil {
		v.placement = newSelected(options.Placement)
	}
	return v
}

func (v *view) putProfile(profile *inventory.Profile) {
	key := inventory.KeyOf(profile)
	delete(v.handover, key)
	if v.profiles[key] == nil {
		v.profilesChanged()
	}
	v.profiles[key] = profile
	v.logAlias(profile)
	v.update(key)
}

func (v *view) removeProfile(key inventory.Key) {
	delete(v.handover, key)
	delete(v.profiles, key)
	v.profilesChanged()
	v.update(key)
}

// profilesChanged follows the addition or removal of profiles.
func (v *view) profilesChanged() {
	if v.missing != nil {
		v.missing.changed = true
	}
}

// setAvailable records whether the profiles of a namespace can be read.
func (v *view) setAvailable(namespace string, available bool, now time.Time) {
	if !available {
		v.unavailable[namespace] = true
		return
	}
	if v.unavailable[namespace] && v.missing != nil {
		v.missing.restart(now)
	}
	delete(v.unavailable, namespace)
}

// logAlias logs the use of another name for the cluster's ID, once for each cluster
// manager.
func (v *view) logAlias(profile *inventory.Profile) {
	manager := profile.Spec.ClusterManager.Name
	if v.aliasManagers[manager] || len(v.aliasManagers) == maxAliasManagers {
		return
	}
	if _, ok := inventory.Property(profile, inventory.PropertyClusterIDAlias); !ok {
		return
	}
	if id, _ := inventory.Property(profile, inventory.PropertyClusterID); id == "" {
		v.aliasManagers[manager] = true
		v.log.Info("Cluster manager writes the cluster ID under another name than KEP-2149, reading that", "clusterManager", manager,
			"property", inventory.PropertyClusterIDAlias, "standard", inventory.PropertyClusterID, "profile", inventory.KeyOf(profile))
	}
}

func (v *view) profilesRead(namespace string, now time.Time) {
	delete(v.unreadProfiles, namespace)
	if len(v.unreadProfiles) == 0 {
		v.profilesReadAt = now
	}
	v.updateAll(func(key inventory.Key) bool { return namespace == "" || key.Namespace == namespace })
}

// putNamespace sets the ClusterSet of a namespace, "" for none.
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
			v.update(key)
		}
	}
}

func (v *view) namespacesRead(namespace string) {
	delete(v.unreadNamespaces, namespace)
}

func (v *view) namespacesForbidden(namespace string, err error) {
	delete(v.unreadNamespaces, namespace)
	if !v.forbidden {
		v.forbidden = true
		v.log.Info("Not allowed to list and watch namespaces in the hub, ignoring their ClusterSet labels", "error", err.Error())
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
	v.placement.listed = true
	v.decide(now)
	v.placement.logState(v.log)
}

// decide reads the decision again.
func (v *view) decide(now time.Time) {
	if !v.placement.listed {
		return
	}
	added := map[inventory.Key]bool{}
	for _, key := range v.placement.decide(now) {
		added[key] = true
	}
	v.profilesChanged()
	v.updateAll(func(key inventory.Key) bool { return added[key] })
	if len(added) > 0 {
		v.placement.logState(v.log)
	}
}

// advance does what is due, and returns when to call it again if no event comes.
func (v *view) advance(now time.Time) (next time.Time, ok bool) {
	if !v.open && len(v.unreadProfiles) == 0 && len(v.unreadNamespaces) > 0 {
		next, ok = v.profilesReadAt.Add(namespaceTimeout), true
		if !now.Before(next) {
			v.log.Info("Timed out reading the namespaces of the hub, ignoring their ClusterSet labels")
			clear(v.unreadNamespaces)
			ok = false
		}
	}
	if !v.open && len(v.unreadNamespaces) == 0 && (v.placement == nil || v.placement.listed) {
		v.open = true
		v.updateAll(func(inventory.Key) bool { return true })
	}
	if v.open && !v.synced && len(v.unreadProfiles) == 0 {
		v.synced = true
		v.sink.Synced()
	}
	if v.placement == nil {
		return next, ok
	}
	for _, key := range v.placement.expire(now) {
		v.update(key)
	}
	if expiry, leaving := v.placement.nextExpiry(); leaving && (!ok || expiry.Before(next)) {
		next, ok = expiry, true
	}
	if v.missing != nil && v.synced && !v.placement.unavailable && len(v.unavailable) == 0 {
		if due, found := v.missing.check(v.log, v.placement.decision, v.profiles, now); found {
			next, ok = earlier(next, ok, due)
		}
	}
	return next, ok
}

// updateAll calls update for the profiles with these keys, in their order of
// precedence.
func (v *view) updateAll(these func(inventory.Key) bool) {
	if !v.open {
		return
	}
	var profiles []*inventory.Profile
	for key, profile := range v.profiles {
		if these(key) {
			profiles = append(profiles, v.annotated(profile))
		}
	}
	slices.SortFunc(profiles, inventory.ComparePrecedence)
	for _, profile := range profiles {
		v.update(inventory.KeyOf(profile))
	}
}

// update sends the sink the profile with the key, or its removal.
func (v *view) update(key inventory.Key) {
	if !v.open || v.unreadProfiles[""] || v.unreadProfiles[key.Namespace] {
		return
	}
	profile := v.profiles[key]
	if profile != nil && (v.placement == nil || v.placement.has(key)) {
		v.sent[key] = true
		v.sink.Put(v.annotated(profile))
		return
	}
	if v.sent[key] {
		delete(v.sent, key)
		v.sink.Remove(key)
	}
}

// annotated returns the profile with the ClusterSet of its namespace, and without
// the annotations that its author is not trusted to set.
func (v *view) annotated(profile *inventory.Profile) *inventory.Profile {
	if !v.trust {
		for _, annotation := range []string{inventory.AnnotationClusterName, inventory.AnnotationRenamedFrom} {
			profile = metadata.WithAnnotation(profile, annotation, "")
		}
	}
	profile = metadata.WithAnnotation(profile, inventory.AnnotationSource, "")
	return metadata.WithAnnotation(profile, inventory.AnnotationNamespaceClusterSet, v.sets[profile.Namespace])
}
