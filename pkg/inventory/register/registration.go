// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels and annotations of what Register creates.
const (
	// LabelManagedBy has the value Manager.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// LabelRegistration identifies the registration, unique in all clusters.
	LabelRegistration = "rollcall.dev/registration"

	// LabelInventory is a Secret's label with the namespace of its profile.
	LabelInventory = "rollcall.dev/inventory"

	// AnnotationRegistered has the namespace and name of the profile.
	AnnotationRegistered = "rollcall.dev/registered-as"

	// AnnotationServer is a Secret's annotation with the only server that the plugin
	// token-secret sends the token to.
	AnnotationServer = "rollcall.dev/server"

	// AnnotationTokenLifetime is a Secret's annotation with the lifetime that was
	// requested for the token, such as "720h0m0s".
	AnnotationTokenLifetime = "rollcall.dev/token-lifetime"

	// AnnotationMemberID is a Secret's annotation with the UID of the member's
	// namespace kube-system.
	AnnotationMemberID = "rollcall.dev/member-id"
)

// registration is a profile's name in an inventory of a hub.
type registration struct {
	namespace, name string
	id              string // the value of LabelRegistration
}

// newRegistration reads the UID of the inventory's namespace, which no other hub has.
func newRegistration(ctx context.Context, hub *cluster, namespace, name string) (registration, error) {
	object := &corev1.Namespace{}
	err := hub.Get(ctx, types.NamespacedName{Name: namespace}, object)
	switch {
	case apierrors.IsNotFound(err):
		return registration{}, fmt.Errorf("hub: namespace %s does not exist: create it, or choose another one", namespace)
	case err != nil:
		return registration{}, fmt.Errorf("hub: namespace %s: %w", namespace, err)
	}
	sum := sha256.Sum256([]byte(string(object.UID) + "/" + namespace + "/" + name))
	return registration{namespace: namespace, name: name, id: hex.EncodeToString(sum[:16])}, nil
}

func (r registration) String() string { return r.namespace + "/" + r.name }

// objectName is the name of the objects other than the profile. A namespace has no
// dot, so that it is unique.
func (r registration) objectName() string { return objectName(r.namespace, r.name) }

func objectName(namespace, name string) string { return namespace + "." + name }

// clusterRoleName is unique among registrations in several hubs, which must have
// different namespaces in the member if they have the same name.
func (r registration) clusterRoleName(memberNamespace string) string {
	return memberNamespace + ":" + r.objectName()
}

func (r registration) mark(object client.Object) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelManagedBy], labels[LabelRegistration] = Manager, r.id
	object.SetLabels(labels)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationRegistered] = r.String()
	object.SetAnnotations(annotations)
}

// owns reports whether the registration has created the object.
func (r registration) owns(object client.Object) bool {
	return object.GetLabels()[LabelManagedBy] == Manager && object.GetLabels()[LabelRegistration] == r.id
}

func (r registration) selector() client.MatchingLabels {
	return client.MatchingLabels{LabelManagedBy: Manager, LabelRegistration: r.id}
}
