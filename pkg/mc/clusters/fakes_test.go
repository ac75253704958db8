// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

var errFake = errors.New("as the test wants")

// fakeCluster is a cluster whose caches sync, whose indexes can be added, and
// whose Start returns with its context, unless a test says otherwise.
type fakeCluster struct {
	cluster.Cluster
	host string

	sync  gate // passed when the caches have synced
	index gate // passed by each IndexField
	start gate // passed by Start when its context has ended
	fail  chan error

	mu      sync.Mutex // guards what follows
	started int
	running bool
	indexes []string
}

func newFake(host string) *fakeCluster {
	return &fakeCluster{host: host, fail: make(chan error)}
}

// gate is open, or shut until a test opens it.
type gate struct{ opened chan struct{} }

func (g *gate) shut() { g.opened = make(chan struct{}) }
func (g *gate) open() { close(g.opened) }

// pass waits until the gate is open, and returns false if the end comes first.
func (g *gate) pass(end <-chan struct{}) bool {
	if g.opened == nil {
		return true
	}
	select {
	case <-g.opened:
		return true
	case <-end:
		return false
	}
}

func (f *fakeCluster) Start(ctx context.Context) error {
	f.set(true)
	defer f.set(false)
	select {
	case err := <-f.fail:
		return err
	case <-ctx.Done():
		f.start.pass(nil)
		return ctx.Err()
	}
}

func (f *fakeCluster) set(running bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = running
	if running {
		f.started++
	}
}

func (f *fakeCluster) runs() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running
}

func (f *fakeCluster) starts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

func (f *fakeCluster) indexed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.indexes...)
}

func (f *fakeCluster) GetConfig() *rest.Config              { return &rest.Config{Host: f.host} }
func (f *fakeCluster) GetCache() cache.Cache                { return fakeCache{cluster: f} }
func (f *fakeCluster) GetFieldIndexer() client.FieldIndexer { return f }

// IndexField ignores its context, as discovery does.
func (f *fakeCluster) IndexField(_ context.Context, _ client.Object, field string, _ client.IndexerFunc) error {
	f.index.pass(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.indexes = append(f.indexes, field)
	if field == "refused" {
		return errFake
	}
	return nil
}

type fakeCache struct {
	cache.Cache
	cluster *fakeCluster
}

func (f fakeCache) WaitForCacheSync(ctx context.Context) bool {
	return f.cluster.sync.pass(ctx.Done())
}

// engagements is an Aware that records its engagements.
type engagements struct {
	mu   sync.Mutex
	all  []engagement
	fail error
	then func() // called by Engage
}

type engagement struct {
	ctx     context.Context
	name    multicluster.ClusterName
	cluster cluster.Cluster
}

func (e *engagements) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	e.mu.Lock()
	e.all = append(e.all, engagement{ctx, name, cl})
	e.mu.Unlock()
	if e.then != nil {
		e.then()
	}
	return e.fail
}

// list returns all engagements, also those that have ended.
func (e *engagements) list() []engagement {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]engagement(nil), e.all...)
}

// live returns the clusters of the engagements that have not ended.
func (e *engagements) live() []cluster.Cluster {
	var live []cluster.Cluster
	for _, one := range e.list() {
		if one.ctx.Err() == nil {
			live = append(live, one.cluster)
		}
	}
	return live
}

// reports is an ErrorHandler.
type reports struct {
	mu   sync.Mutex
	errs []error
}

func (r *reports) handle(err error, _ string, _ ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

func (r *reports) list() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.errs...)
}

// world is Clusters under test, with what they call.
type world struct {
	*clusters.Clusters[*fakeCluster]
	engagements *engagements
	reports     *reports
	ctx         context.Context // of all clusters
	end         context.CancelFunc
}

// inBubble runs a test with synctest. At its end no goroutine may be left.
func inBubble(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			Clusters:    &clusters.Clusters[*fakeCluster]{WaitCacheTimeout: 10 * time.Second},
			engagements: &engagements{},
			reports:     &reports{},
		}
		w.ErrorHandler = w.reports.handle
		w.ctx, w.end = context.WithCancel(t.Context())
		test(t, w)
		w.end()
	})
}

func (w *world) add(name multicluster.ClusterName, cl *fakeCluster) error {
	return w.Add(w.ctx, name, cl, w.engagements)
}

func (w *world) addOrReplace(name multicluster.ClusterName, cl *fakeCluster) error {
	return w.AddOrReplace(w.ctx, name, cl, w.engagements)
}

// inBackground returns where the error of the call will be.
func inBackground(call func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- call() }()
	synctest.Wait()
	return result
}
