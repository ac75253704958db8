// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// ForOption is an option of For.
type ForOption interface {
	// ApplyToFor applies the option.
	ApplyToFor(*ForInput)
}

// OwnsOption is an option of Owns.
type OwnsOption interface {
	// ApplyToOwns applies the option.
	ApplyToOwns(*OwnsInput)
}

// WatchesOption is an option of Watches.
type WatchesOption interface {
	// ApplyToWatches applies the option.
	ApplyToWatches(untypedWatchesInput)
}

// watched is what For, Owns and Watches have in common.
type watched struct {
	object     client.Object
	predicates []predicate.Predicate
	projection projection
}

// ForInput has the object and options of For.
type ForInput struct {
	EngageOptions
	watched
}

// OwnsInput has the object and options of Owns.
type OwnsInput struct {
	EngageOptions
	watched
	matchEveryOwner bool
}

// WatchesInput has the object, handler and options of Watches.
type WatchesInput[request mcreconcile.ClusterAware[request]] struct {
	EngageOptions
	watched
	method  string // For, Owns or Watches
	handler mchandler.TypedEventHandlerFunc[client.Object, request]
}

// untypedWatchesInput is a WatchesInput of any type of request.
type untypedWatchesInput interface {
	untyped() (*EngageOptions, *watched)
}

func (w *WatchesInput[request]) untyped() (*EngageOptions, *watched) {
	return &w.EngageOptions, &w.watched
}

// ClusterFilterFunc reports whether to watch a cluster.
type ClusterFilterFunc = mcsource.ClusterFilterFunc

// EngageOptions select the clusters that For, Owns or Watches watch. They can be
// combined. Of several options of the same kind the last one applies;
// WithClusterFilter and WithClustersFromProvider are of the same kind.
type EngageOptions struct {
	engageWithLocalCluster     *bool
	engageWithProviderClusters *bool
	filter                     *ClusterFilterFunc // of the provider's clusters; nil if not set
	err                        error              // an invalid argument
}

// WithEngageWithLocalCluster sets whether to watch the local cluster. Defaults to
// true if the manager has no provider, and to false otherwise.
func WithEngageWithLocalCluster(engage bool) EngageOptions {
	return EngageOptions{engageWithLocalCluster: &engage}
}

// WithEngageWithProviderClusters sets whether to watch the clusters of the
// provider. Defaults to true if the manager has a provider.
func WithEngageWithProviderClusters(engage bool) EngageOptions {
	return EngageOptions{engageWithProviderClusters: &engage}
}

// WithClusterFilter watches only those clusters of the provider for which the
// function returns true. It does not concern the local cluster: see
// WithEngageWithLocalCluster. The function is called when a cluster is engaged and
// again for each retry of a source that failed there. It may be called from any
// goroutine and must not block. A nil function watches all clusters.
func WithClusterFilter(filter ClusterFilterFunc) EngageOptions {
	return EngageOptions{filter: &filter}
}

// WithClustersFromProvider is WithClusterFilter for the clusters of one provider:
// that of the manager, or one that it is composed of. The latter may know a cluster
// by its name without a prefix.
func WithClustersFromProvider(ctx context.Context, provider multicluster.Provider) EngageOptions {
	if identity.IsNil(provider) {
		return EngageOptions{err: errors.New("the provider of WithClustersFromProvider must not be nil")}
	}
	return WithClusterFilter(func(clusterName multicluster.ClusterName, cl cluster.Cluster) bool {
		for i := range clusterName {
			if own, err := provider.Get(ctx, clusterName[i:]); err == nil && identity.Same(own, cl) {
				return true
			}
		}
		return false
	})
}

// ApplyToFor applies the options to For.
func (w EngageOptions) ApplyToFor(opts *ForInput) {
	opts.merge(w)
}

// ApplyToOwns applies the options to Owns.
func (w EngageOptions) ApplyToOwns(opts *OwnsInput) {
	opts.merge(w)
}

// ApplyToWatches applies the options to Watches.
func (w EngageOptions) ApplyToWatches(opts untypedWatchesInput) {
	engage, _ := opts.untyped()
	engage.merge(w)
}

func (w *EngageOptions) merge(other EngageOptions) {
	if other.engageWithLocalCluster != nil {
		w.engageWithLocalCluster = other.engageWithLocalCluster
	}
	if other.engageWithProviderClusters != nil {
		w.engageWithProviderClusters = other.engageWithProviderClusters
	}
	if other.err != nil {
		w.err = other.err
	}
	if other.filter != nil {
		w.filter = other.filter
	}
}

// Predicates filter the events of For, Owns or Watches.
type Predicates struct {
	predicates []predicate.Predicate
}

// WithPredicates sets the predicates that events must pass.
func WithPredicates(predicates ...predicate.Predicate) Predicates {
	return Predicates{predicates: predicates}
}

// ApplyToFor applies the predicates to For.
func (w Predicates) ApplyToFor(opts *ForInput) {
	opts.predicates = w.predicates
}

// ApplyToOwns applies the predicates to Owns.
func (w Predicates) ApplyToOwns(opts *OwnsInput) {
	opts.predicates = w.predicates
}

// ApplyToWatches applies the predicates to Watches.
func (w Predicates) ApplyToWatches(opts untypedWatchesInput) {
	_, in := opts.untyped()
	in.predicates = w.predicates
}

// projection is the representation of objects that is watched.
type projection int

const (
	projectAsNormal projection = iota
	projectAsMetadata
)

// OnlyMetadata makes For, Owns or Watches watch only the metadata of the objects.
// Read them as metav1.PartialObjectMetadata.
var OnlyMetadata = projectAs(projectAsMetadata)

// projectAs is an option that sets the projection.
type projectAs projection

// ApplyToFor applies the projection to For.
func (p projectAs) ApplyToFor(opts *ForInput) {
	opts.projection = projection(p)
}

// ApplyToOwns applies the projection to Owns.
func (p projectAs) ApplyToOwns(opts *OwnsInput) {
	opts.projection = projection(p)
}

// ApplyToWatches applies the projection to Watches.
func (p projectAs) ApplyToWatches(opts untypedWatchesInput) {
	_, in := opts.untyped()
	in.projection = projection(p)
}

// project returns the object to watch in the cluster.
func (p projection) project(cl cluster.Cluster, obj client.Object) (client.Object, error) {
	if p != projectAsMetadata {
		return obj, nil
	}
	gvk, err := apiutil.GVKForObject(obj, cl.GetScheme())
	if err != nil {
		return nil, fmt.Errorf("cannot watch the metadata of %T: %w", obj, err)
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(gvk)
	return metadata, nil
}

// MatchEveryOwner makes Owns enqueue all owners of the kind of For, not only the
// controller reference.
var MatchEveryOwner = &matchEveryOwner{}

type matchEveryOwner struct{}

// ApplyToOwns applies the option to Owns.
func (*matchEveryOwner) ApplyToOwns(opts *OwnsInput) {
	opts.matchEveryOwner = true
}
