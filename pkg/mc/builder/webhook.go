// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// WebhookBuilder builds the webhooks of a type. It is controller-runtime's:
// webhooks belong to the process and its server, whichever clusters call them.
type WebhookBuilder[T runtime.Object] = builder.WebhookBuilder[T]

// WebhookManagedBy returns a builder for the webhooks of the object's type,
// served by the manager's webhook server. A multi-cluster manager is passed as
// the manager of its local cluster:
//
//	err := mcbuilder.WebhookManagedBy(mgr.GetLocalManager(), &corev1.Pod{}).
//		WithDefaulter(defaulter).
//		WithValidator(validator).
//		Complete()
//
// The type must be in the local manager's scheme. Any cluster may call the
// webhooks, but an admission request does not say which one does. Where that
// matters, tell clusters apart in WithContextFunc, by the host name that each is
// given to call or by its client certificate.
func WebhookManagedBy[T runtime.Object](m manager.Manager, object T) *WebhookBuilder[T] {
	return builder.WebhookManagedBy(m, object)
}
