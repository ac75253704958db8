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

// Request names an object and the cluster that it lives in.
type Request = mcreconcile.Request

// Result says whether and when a request is to be reconciled again.
type Result = reconcile.Result

// SchemeBuilder collects the types of an API group version.
//
// Deprecated: use runtime.NewSchemeBuilder of k8s.io/apimachinery, which spares
// the users of an API package a dependency on controller-runtime.
type SchemeBuilder = scheme.Builder //nolint:staticcheck // named so that programs that use it compile

// GroupVersion is an API group and a version of it.
type GroupVersion = schema.GroupVersion

// GroupResource is an API group and a resource in it, of any version.
type GroupResource = schema.GroupResource

// TypeMeta is the kind and API version of an object.
type TypeMeta = metav1.TypeMeta

// ObjectMeta is the metadata of an object.
type ObjectMeta = metav1.ObjectMeta

var (
	// RegisterFlags adds the flag --kubeconfig to a flag set, by default that of
	// the command line, unless it is there.
	RegisterFlags = config.RegisterFlags

	// GetConfigOrDie is GetConfig, but ends the process if there is an error.
	GetConfigOrDie = config.GetConfigOrDie

	// GetConfig returns the config of the local cluster: from the file that
	// --kubeconfig or the environment variable KUBECONFIG names, else from the
	// pod's service account, else from the file in the user's home directory. It
	// limits no rates on the client's side: its QPS is -1.
	GetConfig = config.GetConfig

	// NewControllerManagedBy returns a builder for a controller that the manager
	// starts and engages with clusters.
	NewControllerManagedBy = mcbuilder.ControllerManagedBy

	// NewManager returns a manager for the local cluster that the config leads
	// to and for the clusters of the provider.
	NewManager = mcmanager.New

	// CreateOrUpdate gets an object, changes it with the function, and creates or
	// updates it in the client's cluster. It returns what it has done.
	CreateOrUpdate = controllerutil.CreateOrUpdate

	// SetControllerReference makes an object the controlling owner of another in
	// the same cluster. It is an error if that has another controlling owner.
	SetControllerReference = controllerutil.SetControllerReference

	// SetupSignalHandler returns a context that ends with the first SIGTERM or
	// SIGINT. The second one ends the process with exit code 1. It may be called
	// once.
	SetupSignalHandler = signals.SetupSignalHandler

	// Log is controller-runtime's logger. It writes nowhere before SetLogger is
	// called.
	Log = log.Log

	// LoggerFrom returns the context's logger. In a reconcile, its values name
	// the controller, the cluster and the object.
	LoggerFrom = log.FromContext

	// LoggerInto returns a context that carries the logger.
	LoggerInto = log.IntoContext

	// SetLogger sets where Log, and every logger made of it, write to.
	SetLogger = log.SetLogger
)

// NewWebhookManagedBy returns a builder for the webhooks of the object's type.
// A multi-cluster manager is passed as mgr.GetLocalManager().
func NewWebhookManagedBy[T runtime.Object](mgr manager.Manager, obj T) *mcbuilder.WebhookBuilder[T] {
	return mcbuilder.WebhookManagedBy(mgr, obj)
}
