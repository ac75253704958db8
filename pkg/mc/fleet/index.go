// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/timing"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/indexkey"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/retry"
)

// IndexField adds the index to the caches of all clusters, those engaged now, in
// parallel, and those engaged later. It must be called before the informer of the
// kind is started, best before the manager starts. A field can be indexed once.
//
// The errors of all clusters are joined; a cluster that is disengaged during the
// call causes none. A cluster that does not respond is waited for until
// ConnectTimeout or the end of the context. The index is added all the same: it is
// retried with backoff while such a cluster is engaged, and when it is re-engaged.
func (f *Fleet) IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	return f.indexes.add(ctx, index{object: obj, field: field, extract: extractValue})
}

type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

func (i index) key() indexkey.Key { return indexkey.Of(i.object, i.field) }

// applyTo adds the index to the cluster's cache.
func (i index) applyTo(ctx context.Context, cl *worker.Cluster) error {
	return i.wrapError(cl, cl.GetFieldIndexer().IndexField(ctx, i.object, i.field, i.extract))
}

func (i index) wrapError(cl *worker.Cluster, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot index field %q of %T in cluster %q: %w", i.field, i.object, cl.Name(), err)
}

// indexes adds all indexes to all clusters, whichever comes first.
type indexes struct {
	options *ConnectionOptions

	mu       sync.Mutex // guards what follows
	all      []index
	clusters map[*worker.Cluster]struct{} // that have the indexes so far
}

func newIndexes(options *ConnectionOptions) *indexes {
	return &indexes{options: options, clusters: map[*worker.Cluster]struct{}{}}
}

// add adds the index to all present and future clusters.
func (x *indexes) add(ctx context.Context, added index) error {
	present, err := x.append(added)
	if err != nil {
		return err
	}
	ctx, cancel := timing.Within(ctx, x.options.Clock, x.options.ConnectTimeout, "response")
	defer cancel()
	errs := make([]error, len(present))
	var waiting sync.WaitGroup
	for i, cl := range present {
		waiting.Go(func() { errs[i] = x.addToEngaged(ctx, added, cl) })
	}
	waiting.Wait()
	return errors.Join(errs...)
}

// append appends the index and returns the clusters that lack it. Later clusters get
// it from addTo.
func (x *indexes) append(added index) ([]*worker.Cluster, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if slices.ContainsFunc(x.all, func(other index) bool { return other.key() == added.key() }) {
		return nil, fmt.Errorf("field %q of %T is already indexed", added.field, added.object)
	}
	x.all = append(x.all, added)
	return slices.Collect(maps.Keys(x.clusters)), nil
}

// addTo adds the indexes so far to a new cluster.
func (x *indexes) addTo(ctx context.Context, cl *worker.Cluster) error {
	x.mu.Lock()
	x.clusters[cl] = struct{}{}
	all := slices.Clone(x.all)
	x.mu.Unlock()
	for _, i := range all {
		if err := i.applyTo(ctx, cl); err != nil {
			return err
		}
	}
	return nil
}

func (x *indexes) forget(cl *worker.Cluster) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.clusters, cl)
}

// addToEngaged returns the error of the first try, or of the context. The index is
// retried while the cluster is engaged.
func (x *indexes) addToEngaged(ctx context.Context, i index, cl *worker.Cluster) error {
	first := make(chan error, 1)
	if !cl.Go(func() { x.retry(i, cl, first) }) {
		return nil
	}
	var err error
	select {
	case err = <-first:
	case <-cl.Context().Done():
	case <-ctx.Done():
		err = i.wrapError(cl, context.Cause(ctx))
	}
	if err == nil || cl.Context().Err() != nil {
		return nil
	}
	return fmt.Errorf("%w; retrying while the cluster is engaged", err)
}

// retry adds the index, until that succeeds or the cluster is disengaged. The result
// of the first try is sent to the channel.
func (x *indexes) retry(i index, cl *worker.Cluster, first chan<- error) {
	ctx := cl.Context()
	backoff := retry.Backoff(x.options.MinBackoff, x.options.MaxBackoff)
	for try := 1; ctx.Err() == nil; try++ {
		err := i.applyTo(ctx, cl)
		if try == 1 {
			first <- err
		}
		if err == nil {
			return
		}
		delay := backoff.Step()
		if try > 1 {
			log.FromContext(ctx).Info("Cannot add index, retrying", "error", err.Error(), "retryAfter", delay.Round(time.Millisecond).String())
		}
		timer := x.options.Clock.NewTimer(delay)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
		}
	}
}
