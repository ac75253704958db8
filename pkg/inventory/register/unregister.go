// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// UnregisterOptions are what Unregister needs.
type UnregisterOptions struct {
	// Hub is the configuration for the hub, and Namespace and Name are those of the
	// profile. Required.
	Hub             *rest.Config
	Namespace, Name string

	// Member is the configuration of an administrator of the member. Required unless
	// SkipMember is set.
	Member *rest.Config

	// SkipMember removes only what is in the hub, for a member that does not exist any
	// more.
	SkipMember bool

	// SecretNamespace is that of Options. It is needed only if the profile does not
	// exist any more. Defaults to Namespace.
	SecretNamespace string

	// DryRun reports what would be deleted.
	DryRun bool

	// OnChange receives each change when it was made. Defaults to nothing.
	OnChange func(Change)
}

// Unregistered is what Unregister has done.
type Unregistered struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`

	// Changes has the deleted objects, with DryRun those that would be deleted.
	Changes []Change `json:"changes"`

	// Left is what was to be deleted and still exists, because of an error or
	// SkipMember.
	Left []string `json:"left,omitempty"`
}

// Unregister deletes what Register has created, and nothing else: the profile first,
// then the Secret, then the objects in the member. The namespace in the member is
// deleted if Register has created it and nothing else is in it.
//
// The error is ErrInvalidOptions, ErrNotRegistered, ErrNotOwned, ErrOtherCluster or
// ErrUnreachable, with which nothing was changed, or that of a request, after which the
// same call deletes the rest.
func Unregister(ctx context.Context, o UnregisterOptions) (*Unregistered, error) {
	o.SecretNamespace = cmp.Or(o.SecretNamespace, o.Namespace)
	switch {
	case o.Hub == nil:
		return nil, invalid("the configuration of the hub is required")
	case o.Member == nil && !o.SkipMember:
		return nil, invalid("the configuration of the member is required, or SkipMember")
	}
	if err := checkNames(o.Namespace, o.Name, o.SecretNamespace); err != nil {
		return nil, err
	}
	u := &removal{o: o, result: &Unregistered{Namespace: o.Namespace, Name: o.Name, Changes: []Change{}}}
	if err := u.find(ctx); err != nil {
		return u.result, err
	}
	return u.result, u.run(ctx)
}

// removal is one call of Unregister.
type removal struct {
	registration
	o           UnregisterOptions
	hub, member *cluster
	result      *Unregistered
	steps       []step
}

// step is an object to delete.
type step struct {
	cluster *cluster
	object  client.Object
}

// find looks for everything to delete.
func (u *removal) find(ctx context.Context) error {
	var err error
	if u.hub, err = connect(u.o.Hub, "hub"); err != nil {
		return err
	}
	if u.registration, err = newRegistration(ctx, u.hub, u.o.Namespace, u.o.Name); err != nil {
		return err
	}
	profile := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: u.name}}
	found, err := u.hub.find(ctx, u.registration, profile)
	if err != nil {
		return err
	}
	memberID, namespaces := "", []string{u.o.SecretNamespace}
	if found {
		u.steps = append(u.steps, step{u.hub, profile})
		memberID = inventory.MemberID(profile)
		namespaces = append(namespaces, secretOf(profile))
	}
	secrets, err := u.hub.secrets(ctx, u.registration, namespaces...)
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		u.steps = append(u.steps, step{u.hub, secret})
		memberID = cmp.Or(memberID, secret.Annotations[AnnotationMemberID])
	}
	if u.o.SkipMember {
		u.result.Left = append(u.result.Left, fmt.Sprintf("member: objects with the label %s=%s", LabelRegistration, u.id))
	} else if err := u.findInMember(ctx, memberID); err != nil {
		return err
	}
	if len(u.steps) == 0 {
		return fmt.Errorf("%w: nothing of %s was found", ErrNotRegistered, u.registration)
	}
	return nil
}

func (u *removal) findInMember(ctx context.Context, memberID string) error {
	var err error
	if u.member, err = connect(u.o.Member, "member"); err != nil {
		return err
	}
	id, err := u.member.clusterID(ctx)
	if status := apierrors.APIStatus(nil); err != nil && !errors.As(err, &status) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	switch {
	case err != nil:
		return err
	case memberID != "" && memberID != id:
		return fmt.Errorf("%w: %s stands for %s, and the member is %s", ErrOtherCluster, u.registration, memberID, id)
	}
	objects, err := u.member.objects(ctx, u.registration)
	if err != nil {
		return err
	}
	namespaces, kept, err := u.member.removable(ctx, u.registration, objects)
	if err != nil {
		return err
	}
	u.result.Left = append(u.result.Left, kept...)
	// Before what is in them, by which they are found if this call does not get to the
	// end.
	for _, namespace := range namespaces {
		u.steps = append(u.steps, step{u.member, namespace})
	}
	for _, object := range objects {
		u.steps = append(u.steps, step{u.member, object})
	}
	return nil
}

// run deletes everything, and ends with the first error.
func (u *removal) run(ctx context.Context) error {
	for i, step := range u.steps {
		change := step.cluster.describe(step.object)
		change.Action = Deleted
		if !u.o.DryRun {
			if _, err := step.cluster.remove(ctx, step.object); err != nil {
				for _, left := range u.steps[i:] {
					change := left.cluster.describe(left.object)
					change.Action = "left"
					u.result.Left = append(u.result.Left, change.String())
				}
				return err
			}
		}
		u.result.Changes = append(u.result.Changes, change)
		if u.o.OnChange != nil {
			u.o.OnChange(change)
		}
	}
	return nil
}
