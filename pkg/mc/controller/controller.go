// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/requestlog"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/sources"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// Controller reconciles Requests.
type Controller = TypedController[mcreconcile.Request]

// Options are those of controller-runtime's controllers. All of them have the
// effect that they have there. NewQueue defaults to a FairQueue with a cap: if
// the manager has a provider and the controller a source of many clusters, their
// lifecycle included, no cluster holds all of the workers while more than one is
// engaged. The local cluster counts as one if Watch has sources other than the
// lifecycle of clusters.
type Options = controller.TypedOptions[mcreconcile.Request]

// TypedController reconciles requests of any ClusterAware type.
type TypedController[request mcreconcile.ClusterAware[request]] interface {
	controller.TypedController[request]
	multicluster.Aware

	// MultiClusterWatch watches the source in every cluster that the controller
	// is engaged with, present and future. Watch, in contrast, starts one source
	// once. Both may be called from any goroutine, also while the controller runs.
	MultiClusterWatch(src mcsource.TypedSource[client.Object, request]) error
}

// New returns a controller that the manager starts and engages with clusters.
// The name must be unique in the process: metrics and logs carry it.
func New(name string, mgr mcmanager.Manager, options Options) (Controller, error) {
	return NewTyped(name, mgr, options)
}

// NewTyped is New for any request type.
func NewTyped[request mcreconcile.ClusterAware[request]](name string, mgr mcmanager.Manager, options controller.TypedOptions[request]) (TypedController[request], error) {
	options.DefaultFromConfig(mgr.GetControllerOptions())
	c, err := NewTypedUnmanaged(name, mgr, options)
	if err != nil {
		return nil, err
	}
	return c, mgr.Add(c)
}

// NewUnmanaged is New, but the caller starts the controller and engages
// clusters with it.
func NewUnmanaged(name string, mgr mcmanager.Manager, options Options) (Controller, error) {
	return NewTypedUnmanaged(name, mgr, options)
}

// NewTypedUnmanaged is NewTyped, but the caller starts the controller and
// engages clusters with it.
func NewTypedUnmanaged[request mcreconcile.ClusterAware[request]](name string, mgr mcmanager.Manager, options controller.TypedOptions[request]) (TypedController[request], error) {
	if options.Reconciler == nil {
		return nil, errors.New("must specify Reconciler")
	}
	if options.Logger.GetSink() == nil {
		options.Logger = mgr.GetLogger()
	}
	if options.LogConstructor == nil {
		options.LogConstructor = requestlog.Constructor[request](options.Logger.WithValues("controller", name), "object")
	}
	if options.CacheSyncTimeout == 0 {
		options.CacheSyncTimeout = defaultCacheSyncTimeout
	}

	c := &mcController[request]{
		name:           name,
		syncTimeout:    options.CacheSyncTimeout,
		withPriorities: ptr.Deref(options.UsePriorityQueue, true),
		engagements:    map[multicluster.ClusterName]*engagement[request]{},
	}
	if options.NewQueue == nil {
		options.NewQueue = FairQueue(queue.Options[request]{Log: options.Logger.WithValues("controller", name)})
		if mgr.GetProvider() != nil {
			c.maxPerCluster = options.MaxConcurrentReconciles - 1
		}
	}
	options.Reconciler = &clusterReconciler[request]{controller: c, reconciler: options.Reconciler}
	options.NewQueue = c.captureQueue(options.NewQueue)

	inner, err := controller.NewTypedUnmanaged(name, options)
	if err != nil {
		return nil, err
	}
	c.TypedController = inner
	// This source hands over the queue when the controller starts its sources.
	if err := inner.Watch(&starter[request]{controller: c}); err != nil {
		return nil, err
	}
	return c, nil
}

// defaultCacheSyncTimeout is controller-runtime's.
const defaultCacheSyncTimeout = 2 * time.Minute

// mcController implements TypedController. Unlike the inner controller it starts
// a source once for each cluster.
type mcController[request mcreconcile.ClusterAware[request]] struct {
	controller.TypedController[request]
	name           string
	syncTimeout    time.Duration
	withPriorities bool
	maxPerCluster  int // how many workers one of several clusters may hold; 0 for no cap

	running sync.WaitGroup // counts the goroutines that start sources

	mu          sync.RWMutex // guards what follows; held during calls of the queue, which never block
	sources     []mcsource.TypedSource[client.Object, request]
	engagements map[multicluster.ClusterName]*engagement[request]
	watchers    []sources.ClusterWatcher
	// watchesLocal is set if there are other sources of Watch than watchers.
	watchesLocal bool
	capped       bool              // maxPerCluster is in effect
	awaited      []sources.Awaited // whose end Start waits for
	parked       parked[request]
	waiting      waiting[request]
	// clusters is the queue if it is a clusterQueue. It is set before queue.
	clusters clusterQueue[request]
	// addFromSource is how sources enqueue.
	addFromSource addFunc[request]
	// queue is nil until sources may be started, on the leader or for a warm-up.
	queue   priorityqueue.PriorityQueue[request]
	stopped bool
	onStop  []func() // called by stop
}

var _ manager.LeaderElectionRunnable = &mcController[mcreconcile.Request]{}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *mcController[request]) NeedLeaderElection() bool {
	if inner, ok := c.TypedController.(manager.LeaderElectionRunnable); ok {
		return inner.NeedLeaderElection()
	}
	return true
}

// Warmup starts the sources before the election if EnableWarmup is set.
func (c *mcController[request]) Warmup(ctx context.Context) error {
	inner, ok := c.TypedController.(interface{ Warmup(context.Context) error })
	if !ok {
		return nil
	}
	return inner.Warmup(c.untilStop(ctx))
}

// Start runs the controller until the context ends. When it returns, no source is
// starting or adds requests, and no Reconcile runs.
func (c *mcController[request]) Start(ctx context.Context) error {
	defer c.wait()
	defer c.stop()
	return c.TypedController.Start(c.untilStop(ctx))
}

// untilStop returns a context that ends with stop at the latest.
func (c *mcController[request]) untilStop(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onStop = append(c.onStop, cancel)
	return ctx
}

// wait waits for the goroutines of the controller, after stop.
func (c *mcController[request]) wait() {
	c.running.Wait()
	c.mu.RLock()
	awaited := c.awaited
	c.mu.RUnlock()
	for _, src := range awaited {
		src.Wait()
	}
}

// Watch starts a source once, and notifies it of engagements if it is a
// ClusterWatcher.
func (c *mcController[request]) Watch(src source.TypedSource[request]) error {
	if err := c.TypedController.Watch(src); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if awaited, ok := src.(sources.Awaited); ok {
		c.awaited = append(c.awaited, awaited)
	}
	watcher, ok := src.(sources.ClusterWatcher)
	if !ok {
		c.watchesLocal = true
		c.capLocked()
		return nil
	}
	c.watchers = append(c.watchers, watcher)
	c.capLocked()
	for _, e := range c.engagements {
		watcher.ClusterEngaged(e.ctx, e.name, e.cluster)
	}
	return nil
}

func (c *mcController[request]) MultiClusterWatch(src mcsource.TypedSource[client.Object, request]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = append(c.sources, src)
	c.capLocked()
	if c.queue != nil {
		for _, e := range c.engagements {
			c.watchLocked(e, src)
		}
	}
	return nil
}

func (c *mcController[request]) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	e := newEngagement(ctx, c, name, cl)
	e.shared.Join(e.ctx, e) // first, so that no worker takes requests of an unhealthy cluster
	if !c.engage(e) {
		e.cancel()
	}
	return nil
}

// engage adds the engagement, unless it has ended or exists already.
func (c *mcController[request]) engage(e *engagement[request]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.ctx.Err() != nil || c.stopped {
		return false
	}
	if old := c.engagements[e.name]; old != nil {
		if identity.Same(old.cluster, e.cluster) && identity.Same(old.parent, e.parent) {
			return false
		}
		c.disengageLocked(old)
	}
	c.engagements[e.name] = e
	c.capLocked()
	context.AfterFunc(e.ctx, func() { c.disengage(e) })
	if c.queue != nil {
		c.launchLocked(e)
	}
	for _, watcher := range c.watchers {
		watcher.ClusterEngaged(e.ctx, e.name, e.cluster)
	}
	return true
}

func (c *mcController[request]) holdUnhealthyLocked(e *engagement[request]) {
	switch {
	case c.clusters == nil:
	case e.unhealthy:
		c.clusters.Pause(e.name, unhealthy)
	default:
		c.clusters.Resume(e.name, unhealthy)
	}
}

// start starts the sources of all clusters. They stop when the context ends. It is
// called once.
func (c *mcController[request]) start(ctx context.Context, q priorityqueue.PriorityQueue[request]) {
	context.AfterFunc(ctx, c.stop)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = q
	if c.stopped {
		return
	}
	c.onStop = append(c.onStop, metrics.add(c))
	if c.addFromSource == nil {
		c.addFromSource = q.AddWithOpts
	}
	for _, e := range c.engagements {
		c.launchLocked(e)
	}
}

func (c *mcController[request]) launchLocked(e *engagement[request]) {
	c.holdUnhealthyLocked(e)
	for _, src := range c.sources {
		c.watchLocked(e, src)
	}
	for _, req := range c.parked.take(e.name) {
		c.queue.Add(req)
	}
}

func (c *mcController[request]) disengage(e *engagement[request]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disengageLocked(e)
}

// disengageLocked ends the engagement, unless it has ended already.
func (c *mcController[request]) disengageLocked(e *engagement[request]) {
	if c.engagements[e.name] != e {
		return
	}
	delete(c.engagements, e.name)
	c.capLocked()
	e.end()
	if c.clusters != nil {
		c.clusters.Drop(e.name)
	}
	ofCluster := func(req request) bool { return req.Cluster() == e.name }
	c.parked.drop(ofCluster)
	c.waiting.drop(ofCluster)
	for _, watcher := range c.watchers {
		watcher.ClusterDisengaged(e.name, e.cluster)
	}
}

// stop ends all engagements. No others begin.
func (c *mcController[request]) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for _, f := range c.onStop {
		f()
	}
	c.onStop = nil
	for _, e := range c.engagements {
		c.disengageLocked(e)
	}
	c.waiting.drop(func(request) bool { return true })
}

// dropped reports whether the cluster of a request was disengaged since a worker
// got the request. It returns false if the queue is no clusterQueue.
func (c *mcController[request]) dropped(req request) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.clusters != nil && c.clusters.Dropped(req)
}

// engagement returns the engagement of that name, nil if there is none, and
// whether all of its sources have synced.
func (c *mcController[request]) engagement(name multicluster.ClusterName) (e *engagement[request], synced bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e = c.engagements[name]
	return e, e != nil && len(e.unsynced) == 0
}

// starter is a source without events. controller-runtime's controller starts it
// with all others, and so hands over the context and the queue for sources.
type starter[request mcreconcile.ClusterAware[request]] struct {
	controller *mcController[request]
}

func (s *starter[request]) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[request]) error {
	pq, ok := q.(priorityqueue.PriorityQueue[request])
	if !ok {
		return errors.New("the controller's queue is not a priorityqueue.PriorityQueue")
	}
	s.controller.start(ctx, pq)
	return nil
}

func (s *starter[request]) String() string {
	return "engaged clusters"
}
