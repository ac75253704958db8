// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"context"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
)

// source is the fleet's source: a hub that may not be known before Run.
type source struct {
	options  hub.Options
	selected inventory.Predicate
	isReady  func(ctx context.Context, clp *inventory.Profile) bool // nil for all
	hub      atomic.Pointer[rest.Config]
}

func newSource(opts Options) (*source, error) {
	selected, err := opts.Selection.Predicate()
	if err != nil {
		return nil, err
	}
	if err := opts.Placement.Validate(); err != nil {
		return nil, err
	}
	s := &source{selected: selected, isReady: opts.IsReady, options: hub.Options{
		Namespace:        opts.Namespace,
		Namespaces:       opts.Namespaces,
		LabelSelector:    opts.LabelSelector,
		FieldSelector:    opts.FieldSelector,
		Placement:        opts.Placement,
		TrustAnnotations: opts.TrustAnnotations,
	}}
	s.defaultHub(opts.Hub)
	return s, nil
}

// defaultHub sets the hub's config unless it is set already.
func (s *source) defaultHub(config *rest.Config) {
	if config != nil {
		s.hub.CompareAndSwap(nil, config)
	}
}

// Run implements inventory.Source.
func (s *source) Run(ctx context.Context, sink inventory.Sink) error {
	source, err := hub.New(s.hub.Load(), s.options)
	if err != nil {
		return err
	}
	predicates := []inventory.Predicate{s.selected}
	if s.isReady != nil {
		predicates = append(predicates, func(profile *inventory.Profile) bool { return s.isReady(ctx, profile) })
	}
	return inventory.Select(source, predicates...).Run(ctx, sink)
}

// String names the source for logs.
func (s *source) String() string { return "ClusterProfiles of the hub" }
