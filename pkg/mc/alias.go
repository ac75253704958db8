// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mc

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/scheme"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// Builder builds a controller of Requests.
type Builder = mcbuilder.Builder

// Manager runs the components of a multi-cluster controller.
type Manager = mcmanager.Manager

// Options are those of controller-runtime's manager.
type Options = mcmanager.Options

// Request identifies an object in a cluster.
type Request = mcreconcile.Request

// Result is the result of a reconcile: whether and when to reconcile again.
type Result = reconcile.Result

// SchemeBuilder collects the types of an API group version.
//
// Deprecated: use runtime.NewSchemeBuilder of k8s.io/apimachinery, so that users
// of an API package do not depend on controller-runtime.
type SchemeBuilder = scheme.Builder //nolint:staticcheck // kept for compatibility

// GroupVersion is an API group and a version of it.
type GroupVersion = schema.GroupVersion

// GroupResource is an API group and a resource in it, of any version.
type GroupResource = schema.GroupResource

// TypeMeta is the kind and API version of an object.
type TypeMeta = metav1.TypeMeta

// ObjectMeta is the metadata of an object.
type ObjectMeta = metav1.ObjectMeta

var (
	// RegisterFlags adds the flag --kubeconfig to a flag set, unless it has one.
	// Default: the flag set of the command line.
	RegisterFlags = config.RegisterFlags

	// GetConfigOrDie is GetConfig, but exits the process on an error.
	GetConfigOrDie = config.GetConfigOrDie

	// GetConfig returns the config of the local cluster: from the file named by
	// --kubeconfig or the environment variable KUBECONFIG, else from the service
	// account of the pod, else from the file in the user's home directory. It has
	// no client-side rate limit: its QPS is -1.
	GetConfig = config.GetConfig

	// NewControllerManagedBy returns a builder for a controller that the manager
	// starts and engages with clusters.
	NewControllerManagedBy = mcbuilder.ControllerManagedBy

	// NewManager returns a manager for the local cluster of the config and the
	// clusters of the provider.
	NewManager = mcmanager.New

	// CreateOrUpdate gets an object, changes it with the function, and creates or
	// updates it in the client's cluster. It returns which of them it did.
	CreateOrUpdate = controllerutil.CreateOrUpdate

	// SetControllerReference makes an object the controller of another one in the
	// same cluster. It fails if that one has a different controller.
	SetControllerReference = controllerutil.SetControllerReference

	// SetupSignalHandler returns a context that ends with the first SIGTERM or
	// SIGINT. The second signal exits the process with code 1. It may be called
	// once.
	SetupSignalHandler = signals.SetupSignalHandler

	// Log is controller-runtime's logger. It writes nothing until SetLogger is
	// called.
	Log = log.Log

	// LoggerFrom returns the logger of the context. In a reconcile, it has the
	// controller, the cluster and the object as values.
	LoggerFrom = log.FromContext

	// LoggerInto returns a context with the logger.
	LoggerInto = log.IntoContext

	// SetLogger sets the backend of Log and of all loggers derived from it.
	SetLogger = log.SetLogger
)

// NewWebhookManagedBy returns a builder for the webhooks of the object's type.
// Of a multi-cluster manager, pass mgr.GetLocalManager().
func NewWebhookManagedBy[T runtime.Object](mgr manager.Manager, obj T) *mcbuilder.WebhookBuilder[T] {
	return mcbuilder.WebhookManagedBy(mgr, obj)
}
