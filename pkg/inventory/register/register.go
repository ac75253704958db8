// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Result is what Register has done.
type Result struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	MemberID  string `json:"memberID"` // the UID of the member's namespace kube-system
	Server    string `json:"server"`

	// Access is AccessOIDC or AccessTokenSecret.
	Access Access `json:"access"`

	// User of the member to whom the rules apply.
	User string `json:"user"`

	// Changes has all objects of the registration, also unchanged ones. With DryRun it
	// has the changes that would be made.
	Changes []Change `json:"changes"`

	// Warnings are for people.
	Warnings []string `json:"warnings,omitempty"`
}

// Register adds a cluster to the hub, or brings its registration up to date. After an
// error, the result has the changes that were made, and the same call completes them.
//
// The error is ErrInvalidOptions, ErrNotOwned, ErrOtherCluster or ErrNotTrusted, with
// which nothing was changed, or that of a request.
func Register(ctx context.Context, o Options) (*Result, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.chooseAccess(ctx); err != nil {
		return s.result, err
	}
	// The API servers validate everything before anything is written.
	if err := s.write(ctx, true); err != nil || o.DryRun {
		return s.result, err
	}
	return s.result, s.write(ctx, false)
}

// session is one call of Register.
type session struct {
	registration
	o           Options
	hub, member *cluster
	result      *Result

	memberID, version string
	user              string             // of AccessOIDC, else ""
	previous          *inventory.Profile // nil if there is none
	oldSecrets        string             // the namespace of the Secret that previous names, or ""
	replaced          bool               // previous is that of another cluster
}

// open reads what is there.
func open(ctx context.Context, o Options) (*session, error) {
	s := &session{o: o, result: &Result{Namespace: o.Namespace, Name: o.Name, Server: o.Server, Changes: []Change{}}}
	var err error
	if s.hub, err = connect(o.Hub, "hub"); err != nil {
		return nil, err
	}
	if s.member, err = connect(o.Member, "member"); err != nil {
		return nil, err
	}
	if s.registration, err = newRegistration(ctx, s.hub, o.Namespace, o.Name); err != nil {
		return nil, err
	}
	if s.memberID, err = s.member.clusterID(ctx); err != nil {
		return nil, err
	}
	s.result.MemberID = s.memberID
	versions, err := discovery.NewDiscoveryClientForConfig(s.member.config)
	if err != nil {
		return nil, fmt.Errorf("member: %w", err)
	}
	if version, err := versions.ServerVersionWithContext(ctx); err == nil {
		s.version = version.GitVersion
	}
	return s, s.checkProfiles(ctx)
}

// checkProfiles checks that the name and the cluster have no other registration.
func (s *session) checkProfiles(ctx context.Context) error {
	profiles := &v1alpha1.ClusterProfileList{}
	err := s.hub.List(ctx, profiles, client.InNamespace(s.namespace))
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("hub %s has no ClusterProfiles: install the CRD of the Cluster Inventory API, or choose another hub", s.hub.config.Host)
	case err != nil:
		return fmt.Errorf("hub: listing ClusterProfiles in %s: %w", s.namespace, err)
	}
	for i := range profiles.Items {
		profile := &profiles.Items[i]
		same := inventory.MemberID(profile) == s.memberID || inventory.ClusterID(profile) == s.memberID
		switch {
		case profile.Name == s.name && profile.Spec.ClusterManager.Name == Manager && s.owns(profile):
			s.previous, s.oldSecrets = profile, secretOf(profile)
			if s.replaced = inventory.MemberID(profile) != s.memberID; s.replaced && !s.o.Replace {
				return fmt.Errorf("%w: %s stands for %s, and the member is %s: choose another name, or replace it",
					ErrOtherCluster, s, inventory.MemberID(profile), s.memberID)
			}
		case profile.Name == s.name:
			return s.hub.wrap(profile, fmt.Errorf("%w: it is a profile of the cluster manager %q: choose another name",
				ErrNotOwned, profile.Spec.ClusterManager.Name))
		case same && profile.Labels[LabelManagedBy] == Manager:
			return fmt.Errorf("%w: the member is registered in namespace %s already, as %s: unregister that first", ErrOtherCluster, s.namespace, profile.Name)
		case same:
			s.warn("the profile %s of the cluster manager %q stands for the same cluster", profile.Name, profile.Spec.ClusterManager.Name)
		}
	}
	return nil
}

func (s *session) warn(format string, args ...any) {
	s.result.Warnings = append(s.result.Warnings, fmt.Sprintf(format, args...))
}

// record adds a change that was made, or would be.
func (s *session) record(change Change, dryRun bool) {
	if dryRun != s.o.DryRun {
		return
	}
	s.result.Changes = append(s.result.Changes, change)
	if s.o.OnChange != nil {
		s.o.OnChange(change)
	}
}

// write makes all changes, or lets the API servers validate them.
func (s *session) write(ctx context.Context, dryRun bool) error {
	if s.replaced && !dryRun {
		change, err := s.hub.remove(ctx, s.previous)
		if err != nil {
			return err
		}
		s.previous = nil
		s.record(change, dryRun)
	}
	if err := s.writeMember(ctx, dryRun); err != nil {
		return err
	}
	if s.result.Access == AccessTokenSecret {
		if err := s.writeSecret(ctx, dryRun); err != nil {
			return err
		}
	}
	profile, err := s.profile(s.result.Access, s.previous)
	if err != nil {
		return err
	}
	change, err := s.hub.apply(ctx, s.registration, profile, dryRun)
	if err != nil {
		return err
	}
	s.record(change, dryRun)
	return s.prune(ctx, dryRun)
}

// writeMember creates the user and its permissions in the member.
func (s *session) writeMember(ctx context.Context, dryRun bool) error {
	missing := map[string]bool{} // kinds and namespaces that a dry run did not create
	if s.user == "" {
		created, err := s.createNamespace(ctx, dryRun)
		if err != nil {
			return err
		}
		missing[s.o.MemberNamespace] = created && dryRun
	}
	for _, object := range s.memberObjects(s.user) {
		change := s.member.describe(object)
		// API servers refuse objects in a namespace that is missing, and some users'
		// bindings of roles that are.
		if dryRun && (missing[object.GetNamespace()] || missing[roleOf(object)]) {
			if _, err := s.member.find(ctx, s.registration, copyOf(object)); err != nil {
				return err
			}
			change.Action = Created
		} else {
			var err error
			if change, err = s.member.apply(ctx, s.registration, object, dryRun); err != nil {
				return err
			}
		}
		missing[change.Kind] = dryRun && change.Action == Created
		s.record(change, dryRun)
	}
	return nil
}

// roleOf returns the kind of the binding's role, or "".
func roleOf(object client.Object) string {
	switch binding := object.(type) {
	case *rbacv1.ClusterRoleBinding:
		return binding.RoleRef.Kind
	case *rbacv1.RoleBinding:
		return binding.RoleRef.Kind
	}
	return ""
}

// createNamespace creates the namespace in the member unless it exists. It never
// changes one, which may be of someone else.
func (s *session) createNamespace(ctx context.Context, dryRun bool) (created bool, err error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: s.o.MemberNamespace, Labels: map[string]string{LabelManagedBy: Manager},
	}}
	change := s.member.describe(namespace)
	change.Action = Created
	err = s.member.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	switch {
	case apierrors.IsNotFound(err):
		options := []client.CreateOption{client.FieldOwner(Manager)}
		if dryRun {
			options = append(options, client.DryRunAll)
		}
		if err := s.member.Create(ctx, namespace, options...); err != nil && !apierrors.IsAlreadyExists(err) {
			return false, s.member.wrap(namespace, err)
		}
	case err != nil:
		return false, s.member.wrap(namespace, err)
	case namespace.DeletionTimestamp != nil:
		return false, s.member.wrap(namespace, fmt.Errorf("it is being deleted: try again when it is gone, or choose another namespace of the member"))
	default:
		change.Action = Unchanged
	}
	s.record(change, dryRun)
	return change.Action == Created, nil
}

// writeSecret stores a token in the hub. One that is still good is kept.
func (s *session) writeSecret(ctx context.Context, dryRun bool) error {
	existing := s.secret("")
	found, err := s.hub.find(ctx, s.registration, existing)
	if err != nil {
		return err
	}
	token := "dry-run"
	switch {
	case found && s.reusable(ctx, existing):
		token = string(existing.Data[corev1.ServiceAccountTokenKey])
	case !dryRun:
		if token, err = s.newToken(ctx); err != nil {
			return err
		}
	}
	change, err := s.hub.apply(ctx, s.registration, s.secret(token), dryRun)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("hub: namespace %s, for the Secret, does not exist: create it, or choose another one", s.o.SecretNamespace)
		}
		return err
	}
	s.record(change, dryRun)
	return nil
}

// prune deletes what an earlier registration with other options has left.
func (s *session) prune(ctx context.Context, dryRun bool) error {
	desired := map[client.ObjectKey]bool{}
	for _, object := range s.memberObjects(s.user) {
		desired[client.ObjectKeyFromObject(object)] = true
	}
	left, err := s.member.objects(ctx, s.registration)
	if err != nil {
		return err
	}
	stale := map[*cluster][]client.Object{}
	for _, object := range left {
		if !desired[client.ObjectKeyFromObject(object)] {
			stale[s.member] = append(stale[s.member], object)
		}
	}
	emptied, kept, err := s.member.removable(ctx, s.registration, stale[s.member])
	if err != nil {
		return err
	}
	for _, namespace := range kept {
		if !dryRun {
			s.warn("not removed: %s", namespace)
		}
	}
	for _, namespace := range emptied {
		stale[s.member] = append([]client.Object{namespace}, stale[s.member]...)
	}
	namespaces := []string{s.o.SecretNamespace, s.oldSecrets}
	secrets, err := s.hub.secrets(ctx, s.registration, namespaces...)
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		if s.result.Access != AccessTokenSecret || secret.GetNamespace() != s.o.SecretNamespace {
			stale[s.hub] = append(stale[s.hub], secret)
		}
	}
	for _, c := range []*cluster{s.hub, s.member} {
		for _, object := range stale[c] {
			change := c.describe(object)
			change.Action = Deleted
			if !dryRun {
				if change, err = c.remove(ctx, object); err != nil {
					return err
				}
			}
			s.record(change, dryRun)
		}
	}
	return nil
}
