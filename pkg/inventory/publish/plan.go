// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// plan is what has to be written for a profile.
type plan struct {
	wanted           *inventory.Profile
	metadata, status bool // differ from what is published
	urgent           bool
	muted            bool // only messages of conditions differ besides
	unknown          bool // nothing differs, but what was applied before is not known
}

func (p *plan) empty() bool { return !p.metadata && !p.status }

// applied is what this process has applied. Only the API server knows which fields
// earlier ones have set, and removes those that are no longer applied.
type applied struct {
	uid              types.UID
	metadata, status *inventory.Profile // nil if not yet
}

// plan compares a profile of the source with the published one, which is nil or own.
// The error is a refusedError.
func (o *Options) plan(source, current *inventory.Profile, last *applied, observed *observation, now time.Time, newMessages bool) (*plan, error) {
	p := &plan{wanted: o.wanted(source, current, observed, now)}
	if current == nil {
		p.metadata, p.status, p.urgent = true, true, true
		return p, refuseInvalid(p.wanted)
	}
	if !newMessages {
		p.muted = keepMessages(p.wanted, current)
	}
	if last.uid != current.UID {
		*last = applied{uid: current.UID}
	}
	metadata, status := !coversMetadata(current, p.wanted), !coversStatus(current, p.wanted)
	p.metadata = metadata || last.metadata == nil || !equalMetadata(last.metadata, p.wanted)
	p.status = status || last.status == nil || !equality.Semantic.DeepEqual(last.status.Status, p.wanted.Status)
	p.urgent = status && isUrgent(current, p.wanted)
	p.unknown = !metadata && !status && (last.metadata == nil || last.status == nil)
	return p, refuseInvalid(p.wanted)
}

func equalMetadata(a, b *inventory.Profile) bool {
	return equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Annotations, b.Annotations) && a.Spec == b.Spec
}

func refuseInvalid(profile *inventory.Profile) error {
	if err := inventory.Validate(profile); err != nil {
		return refusedError{fmt.Errorf("the profile would be invalid: %w", err)}
	}
	return nil
}

// refuseForeign returns an error if the profile is not own.
func (o *Options) refuseForeign(published *inventory.Profile) error {
	switch {
	case published == nil || o.isOwn(published):
		return nil
	case published.Spec.ClusterManager.Name != o.ManagerName:
		return refusedError{fmt.Errorf("a profile of the cluster manager %q has this name", published.Spec.ClusterManager.Name)}
	}
	return refusedError{fmt.Errorf("a profile has this name that was not published: it needs the labels %s=%s and the name of its cluster manager", LabelPublisher, FieldManager)}
}

// refuseDuplicate is the error of a cluster whose name another one has.
func refuseDuplicate(used *inventory.Profile) error {
	return refusedError{fmt.Errorf("the cluster %q of the source has this name too: rename one of them", inventory.ClusterName(used))}
}

// write carries out a plan. It returns the profile as it is then, also together with
// an error if a part was written.
func (w *writer) write(ctx context.Context, p *plan, current *inventory.Profile, last *applied, o *Options) (*inventory.Profile, error) {
	if current == nil {
		created, err := w.create(ctx, o.newProfile(p.wanted.Name))
		if err != nil || w.dryRun { // what a dry run has created cannot be applied
			return created, err
		}
		current, *last = created, applied{uid: created.UID}
	}
	if p.metadata {
		changed, err := w.apply(ctx, p.wanted, current.UID)
		if err != nil {
			return current, err
		}
		current, last.metadata = changed, p.wanted
	}
	if p.status {
		changed, err := w.applyStatus(ctx, p.wanted, current.UID)
		if err != nil {
			return current, err
		}
		if w.dryRun { // the metadata was not stored
			changed.ObjectMeta, changed.Spec = current.ObjectMeta, current.Spec
		}
		current, last.status = changed, p.wanted
	}
	return current, nil
}
