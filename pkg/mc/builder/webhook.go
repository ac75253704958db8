// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// WebhookBuilder builds the webhooks of a type. It is that of controller-runtime:
// webhooks belong to the process, not to a cluster.
type WebhookBuilder[T runtime.Object] = builder.WebhookBuilder[T]

// WebhookManagedBy returns a builder for the webhooks of the object's type,
// served by the manager's webhook server. Of a multi-cluster manager, pass the
// manager of the local cluster:
//
//	err := mcbuilder.WebhookManagedBy(mgr.GetLocalManager(), &corev1.Pod{}).
//		WithDefaulter(defaulter).
//		WithValidator(validator).
//		Complete()
//
// The type must be in the scheme of the local manager. Any cluster may call the
// webhooks, and an admission request does not contain the caller's name. To
// distinguish clusters, configure a host name or client certificate for each, and
// check it in WithContextFunc.
func WebhookManagedBy[T runtime.Object](m manager.Manager, object T) *WebhookBuilder[T] {
	return builder.WebhookManagedBy(m, object)
}
