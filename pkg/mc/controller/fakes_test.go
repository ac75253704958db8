// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

type fakeCluster struct {
	cluster.Cluster
	_ int // so that two of them are not the same
}

// series returns the series of a metric, as "label=value … number".
func series(name string) []string {
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			text := ""
			for _, l := range m.GetLabel() {
				text += l.GetName() + "=" + l.GetValue() + " "
			}
			all = append(all, text+fmt.Sprint(m.GetGauge().GetValue()))
		}
	}
	return all
}

type reconcilerFunc = mcreconcile.Func

func request(name multicluster.ClusterName, object string) mcreconcile.Request {
	return mcreconcile.Request{
		ClusterName: name,
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Name: object}},
	}
}

func newManager(t *testing.T) mcmanager.Manager {
	t.Helper()
	mgr, err := mcmanager.New(&rest.Config{Host: "https://127.0.0.1:1"}, nil, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// newController returns a controller that the test starts.
func newController(t *testing.T, r mcreconcile.Reconciler, options mccontroller.Options) mccontroller.Controller {
	t.Helper()
	options.SkipNameValidation = ptr.To(true)
	options.Reconciler = r
	c, err := mccontroller.NewUnmanaged("test", newManager(t), options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs the controller until the test ends. The test fails if it returns an
// error.
func start(t *testing.T, c mccontroller.Controller) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controller failed: %v", err)
		}
	})
}

// recorder records the requests that it reconciles.
type recorder struct {
	block bool  // until the context ends
	err   error // what the first errs reconciles return
	errs  int

	mu       sync.Mutex
	requests []string
	causes   []error
}

func (r *recorder) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	r.mu.Lock()
	r.requests = append(r.requests, req.ClusterName.String()+"/"+req.Name)
	failing := len(r.requests) <= r.errs
	r.mu.Unlock()
	if r.block {
		<-ctx.Done()
		r.mu.Lock()
		r.causes = append(r.causes, context.Cause(ctx))
		r.mu.Unlock()
		return reconcile.Result{}, ctx.Err()
	}
	if failing {
		return reconcile.Result{}, r.err
	}
	return reconcile.Result{}, nil
}

func (r *recorder) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.requests...)
}

func (r *recorder) ended() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.causes...)
}

// failure is how a fakeSource fails in a cluster.
type failure int

const (
	nowhere failure = iota
	atForCluster
	atStart
	hangAtStart
	notWatched // no failure
)

// fakeSource enqueues one request in each cluster when it is started there.
type fakeSource struct {
	object string

	mu       sync.Mutex
	failures map[multicluster.ClusterName]failure
	tried    map[multicluster.ClusterName]int
	syncs    map[multicluster.ClusterName]chan struct{}
	started  map[multicluster.ClusterName]int
	queues   map[multicluster.ClusterName]workqueue.TypedRateLimitingInterface[mcreconcile.Request]
}

func newFakeSource(object string) *fakeSource {
	return &fakeSource{
		object:   object,
		failures: map[multicluster.ClusterName]failure{},
		tried:    map[multicluster.ClusterName]int{},
		syncs:    map[multicluster.ClusterName]chan struct{}{},
		started:  map[multicluster.ClusterName]int{},
		queues:   map[multicluster.ClusterName]workqueue.TypedRateLimitingInterface[mcreconcile.Request]{},
	}
}

func (s *fakeSource) fail(name multicluster.ClusterName, f failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[name] = f
}

func (s *fakeSource) unsynced(name multicluster.ClusterName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncs[name] = make(chan struct{})
}

func (s *fakeSource) sync(name multicluster.ClusterName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.syncs[name])
}

// syncOnce is sync for a source that may have synced.
func (s *fakeSource) syncOnce(name multicluster.ClusterName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.syncs[name]:
	default:
		close(s.syncs[name])
	}
}

func (s *fakeSource) attempts(name multicluster.ClusterName) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried[name]
}

func (s *fakeSource) running(name multicluster.ClusterName) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started[name]
}

// enqueue adds a request as the source of the cluster would.
func (s *fakeSource) enqueue(name multicluster.ClusterName, object string) {
	s.enqueueFor(name, request(name, object))
}

func (s *fakeSource) enqueueFor(name multicluster.ClusterName, req mcreconcile.Request) {
	s.queue(name).Add(req)
}

// enqueueEveryWay adds a request with each method of the queue.
func (s *fakeSource) enqueueEveryWay(name multicluster.ClusterName, object string) {
	req, q := request(name, object), s.queue(name)
	q.Add(req)
	q.AddAfter(req, 0)
	q.AddRateLimited(req)
	q.(priorityqueue.PriorityQueue[mcreconcile.Request]).AddWithOpts(priorityqueue.AddOpts{}, req)
}

func (s *fakeSource) queue(name multicluster.ClusterName) workqueue.TypedRateLimitingInterface[mcreconcile.Request] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[name]
}

func (s *fakeSource) ForCluster(name multicluster.ClusterName, _ cluster.Cluster) (source.TypedSource[mcreconcile.Request], bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried[name]++
	switch s.failures[name] {
	case atForCluster:
		return nil, false, errors.New("cannot be made")
	case notWatched:
		return nil, false, nil
	}
	return &fakeClusterSource{parent: s, name: name}, true, nil
}

func (s *fakeSource) String() string {
	return "fake source"
}

type fakeClusterSource struct {
	parent *fakeSource
	name   multicluster.ClusterName
}

func (s *fakeClusterSource) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
	p := s.parent
	p.mu.Lock()
	failure := p.failures[s.name]
	p.mu.Unlock()
	switch failure {
	case atStart:
		return errors.New("cannot start")
	case hangAtStart:
		<-ctx.Done()
		return ctx.Err()
	}
	p.mu.Lock()
	p.started[s.name]++
	p.queues[s.name] = q
	p.mu.Unlock()
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.started[s.name]--
	})
	q.Add(request(s.name, p.object))
	return nil
}

func (s *fakeClusterSource) WaitForSync(ctx context.Context) error {
	s.parent.mu.Lock()
	synced := s.parent.syncs[s.name]
	s.parent.mu.Unlock()
	if synced == nil {
		return nil
	}
	select {
	case <-synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *fakeClusterSource) String() string {
	return "fake source of " + s.name.String()
}

// plainQueue makes client-go's queues, which know no clusters.
func plainQueue(_ string, limiter workqueue.TypedRateLimiter[mcreconcile.Request]) workqueue.TypedRateLimitingInterface[mcreconcile.Request] {
	return workqueue.NewTypedRateLimitingQueue(limiter)
}

func statusOf(c mccontroller.Controller, name multicluster.ClusterName) mccontroller.ClusterStatus {
	for _, status := range c.(mccontroller.StatusReporter).ClusterStatus() {
		if status.ClusterName == name {
			return status
		}
	}
	return mccontroller.ClusterStatus{}
}
