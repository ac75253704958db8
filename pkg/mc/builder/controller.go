// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/requestlog"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// Builder builds a controller of Requests.
type Builder = TypedBuilder[mcreconcile.Request]

// TypedBuilder builds a multi-cluster controller for a type of request.
type TypedBuilder[request mcreconcile.ClusterAware[request]] struct {
	mgr              mcmanager.Manager
	name             string
	forInput         []ForInput // at most one is valid
	ownsInput        []OwnsInput
	watchesInput     []WatchesInput[request]
	rawSources       []source.TypedSource[request]
	globalPredicates []predicate.Predicate
	options          controller.TypedOptions[request]
	forwardNotFound  bool
}

// ControllerManagedBy returns a builder for a controller of Requests that the
// manager starts and engages with clusters.
func ControllerManagedBy(m mcmanager.Manager) *Builder {
	return TypedControllerManagedBy[mcreconcile.Request](m)
}

// TypedControllerManagedBy returns a builder for a controller of any request
// type that the manager starts and engages with clusters.
func TypedControllerManagedBy[request mcreconcile.ClusterAware[request]](m mcmanager.Manager) *TypedBuilder[request] {
	return &TypedBuilder[request]{mgr: m}
}

// For sets the kind that the controller reconciles. An event of an object enqueues
// a Request for it. For may be called once, and only for controllers of Requests.
// With options that exclude all clusters, nothing is watched, and the kind is only
// used for the name of the controller, its logs and Owns.
func (blder *TypedBuilder[request]) For(object client.Object, opts ...ForOption) *TypedBuilder[request] {
	input := ForInput{watched: watched{object: object}}
	for _, opt := range opts {
		opt.ApplyToFor(&input)
	}
	blder.forInput = append(blder.forInput, input)
	return blder
}

// Owns adds a kind whose objects the controller creates. An event of an object
// enqueues a Request for its owner of the kind of For, in the same cluster. Only
// the controller reference counts, unless MatchEveryOwner is used.
func (blder *TypedBuilder[request]) Owns(object client.Object, opts ...OwnsOption) *TypedBuilder[request] {
	input := OwnsInput{watched: watched{object: object}}
	for _, opt := range opts {
		opt.ApplyToOwns(&input)
	}
	blder.ownsInput = append(blder.ownsInput, input)
	return blder
}

// Watches adds a kind. The function returns the event handler for each cluster. It
// must not return nil; use WithClusterFilter to exclude clusters.
func (blder *TypedBuilder[request]) Watches(
	object client.Object,
	eventHandler mchandler.TypedEventHandlerFunc[client.Object, request],
	opts ...WatchesOption,
) *TypedBuilder[request] {
	input := WatchesInput[request]{watched: watched{object: object}, method: "Watches", handler: eventHandler}
	for _, opt := range opts {
		opt.ApplyToWatches(&input)
	}
	blder.watchesInput = append(blder.watchesInput, input)
	return blder
}

// WatchesMetadata is Watches for the metadata of the objects only, which needs
// less memory. Read such objects as metav1.PartialObjectMetadata: a read of the Go
// type would start a second cache.
func (blder *TypedBuilder[request]) WatchesMetadata(
	object client.Object,
	eventHandler mchandler.TypedEventHandlerFunc[client.Object, request],
	opts ...WatchesOption,
) *TypedBuilder[request] {
	return blder.Watches(object, eventHandler, append(opts, OnlyMetadata)...)
}

// WatchesRawSource adds a source that is started once with the controller, not for
// each cluster. The predicates of WithEventFilter do not apply to it.
func (blder *TypedBuilder[request]) WatchesRawSource(src source.TypedSource[request]) *TypedBuilder[request] {
	blder.rawSources = append(blder.rawSources, src)
	return blder
}

// WithEventFilter adds a predicate that every event of For, Owns and Watches
// must pass.
func (blder *TypedBuilder[request]) WithEventFilter(p predicate.Predicate) *TypedBuilder[request] {
	blder.globalPredicates = append(blder.globalPredicates, p)
	return blder
}

// WithOptions sets the controller's options.
func (blder *TypedBuilder[request]) WithOptions(options controller.TypedOptions[request]) *TypedBuilder[request] {
	blder.options = options
	return blder
}

// WithLogConstructor sets the function that returns the logger of each reconcile.
// For the logger of the controller itself, it is called with nil.
func (blder *TypedBuilder[request]) WithLogConstructor(logConstructor func(*request) logr.Logger) *TypedBuilder[request] {
	blder.options.LogConstructor = logConstructor
	return blder
}

// WithClusterNotFoundWrapper sets whether the reconciler is wrapped in a
// reconcile.ClusterNotFoundWrapper, so that requests for a removed cluster do not
// fail. Defaults to true.
func (blder *TypedBuilder[request]) WithClusterNotFoundWrapper(enabled bool) *TypedBuilder[request] {
	blder.forwardNotFound = !enabled
	return blder
}

// Named sets the name of the controller in metrics and logs. It must be unique in
// the process. Defaults to the kind of For, in lower case.
func (blder *TypedBuilder[request]) Named(name string) *TypedBuilder[request] {
	blder.name = name
	return blder
}

// Complete builds the controller.
func (blder *TypedBuilder[request]) Complete(r reconcile.TypedReconciler[request]) error {
	_, err := blder.Build(r)
	return err
}

// Build builds the controller and returns it. It fails if the controller would
// watch nothing. To add all sources later, create the controller with
// pkg/mc/controller.
func (blder *TypedBuilder[request]) Build(r reconcile.TypedReconciler[request]) (mccontroller.TypedController[request], error) {
	if r == nil {
		return nil, errors.New("must provide a non-nil Reconciler")
	}
	if blder.mgr == nil {
		return nil, errors.New("must provide a non-nil Manager")
	}
	if blder.options.Reconciler != nil {
		return nil, errors.New("the reconciler must not be set in WithOptions(): pass it to Build() or Complete()")
	}
	watches, err := blder.watches()
	if err != nil {
		return nil, err
	}
	ctrl, err := blder.controller(r)
	if err != nil {
		return nil, err
	}
	for _, w := range watches {
		if err := blder.watch(ctrl, w); err != nil {
			return nil, err
		}
	}
	for _, src := range blder.rawSources {
		if err := ctrl.Watch(src); err != nil {
			return nil, err
		}
	}
	return ctrl, nil
}

// watches returns For, Owns and Watches in the same form.
func (blder *TypedBuilder[request]) watches() ([]WatchesInput[request], error) {
	switch {
	case len(blder.forInput) > 1:
		return nil, errors.New("For(...) must be called only once: a controller reconciles one kind")
	case len(blder.ownsInput) > 0 && len(blder.forInput) == 0:
		return nil, errors.New("Owns() needs For(): it enqueues owners of that kind")
	case len(blder.watchesInput) == 0 && len(blder.rawSources) == 0 && len(blder.forInput) == 0:
		return nil, errors.New("the controller watches nothing: use For(), Watches() or WatchesRawSource()")
	}

	var watches []WatchesInput[request]
	for _, in := range blder.forInput {
		handler, err := handlerFor[request]("For", mchandler.EnqueueRequestForObject)
		if err != nil {
			return nil, err
		}
		watches = append(watches, WatchesInput[request]{EngageOptions: in.EngageOptions, watched: in.watched, method: "For", handler: handler})
	}
	for _, in := range blder.ownsInput {
		handler, err := handlerFor[request]("Owns", mchandler.EnqueueRequestForOwner(blder.forInput[0].object, in.ownerOptions()...))
		if err != nil {
			return nil, err
		}
		watches = append(watches, WatchesInput[request]{EngageOptions: in.EngageOptions, watched: in.watched, method: "Owns", handler: handler})
	}
	watches = append(watches, blder.watchesInput...)
	return watches, blder.checkAll(watches)
}

// handlerFor converts a handler of Requests to the builder's type of request. It
// fails if that is another type.
func handlerFor[request mcreconcile.ClusterAware[request]](method string, h mchandler.TypedEventHandlerFunc[client.Object, mcreconcile.Request]) (mchandler.TypedEventHandlerFunc[client.Object, request], error) {
	typed, ok := any(h).(mchandler.TypedEventHandlerFunc[client.Object, request])
	if !ok {
		return nil, fmt.Errorf("%s() enqueues %T, but the controller takes %T: use Watches()", method, mcreconcile.Request{}, *new(request))
	}
	return typed, nil
}

func (in *OwnsInput) ownerOptions() []handler.OwnerOption {
	if in.matchEveryOwner {
		return nil
	}
	return []handler.OwnerOption{handler.OnlyControllerOwner()}
}

func (blder *TypedBuilder[request]) watch(ctrl mccontroller.TypedController[request], in WatchesInput[request]) error {
	predicates := append(append([]predicate.Predicate(nil), blder.globalPredicates...), in.predicates...)
	kind := func(filter mcsource.ClusterFilterFunc) mcsource.TypedSyncingSource[client.Object, request] {
		return mcsource.TypedKind(in.object, in.checkedHandler(), predicates...).
			WithProjection(in.projection.project).
			WithClusterFilter(filter)
	}

	provider, local := blder.engages(in)
	if provider {
		if err := ctrl.MultiClusterWatch(kind(ptr.Deref(in.filter, nil))); err != nil {
			return err
		}
	}
	if !local {
		return nil
	}
	localSource, _, err := kind(nil).ForCluster(mcmanager.LocalCluster, blder.mgr.GetLocalManager())
	if err != nil {
		return err
	}
	return ctrl.Watch(localSource)
}

func (blder *TypedBuilder[request]) controller(r reconcile.TypedReconciler[request]) (mccontroller.TypedController[request], error) {
	var gvk schema.GroupVersionKind
	hasKind := len(blder.forInput) > 0
	if hasKind {
		var err error
		gvk, err = apiutil.GVKForObject(blder.forInput[0].object, blder.mgr.GetLocalManager().GetScheme())
		if err != nil {
			return nil, err
		}
	}
	name := blder.name
	if name == "" {
		if !hasKind {
			return nil, errors.New("the controller needs a name: use For() or Named()")
		}
		name = strings.ToLower(gvk.Kind)
	}

	options := blder.options
	options.Reconciler = r
	if !blder.forwardNotFound {
		options.Reconciler = mcreconcile.NewClusterNotFoundWrapper(r)
	}
	if options.MaxConcurrentReconciles == 0 && hasKind {
		options.MaxConcurrentReconciles = blder.mgr.GetControllerOptions().GroupKindConcurrency[gvk.GroupKind().String()]
	}
	if options.LogConstructor == nil {
		log, objectKey := blder.mgr.GetLogger().WithValues("controller", name), "object"
		if hasKind {
			log, objectKey = log.WithValues("controllerGroup", gvk.Group, "controllerKind", gvk.Kind), gvk.Kind
		}
		options.LogConstructor = requestlog.Constructor[request](log, objectKey)
	}
	return mccontroller.NewTyped(name, blder.mgr, options)
}
