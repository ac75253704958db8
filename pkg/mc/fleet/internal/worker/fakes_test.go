// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/admission"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/informer"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// The options of the workers under test.
const (
	connectTimeout = 30 * time.Second
	minBackoff     = time.Second
	maxBackoff     = 5 * time.Minute
	probeInterval  = 10 * time.Second
	dropAfter      = 10 * time.Minute
)

var errDown = errors.New("down")

// hang returns when the context ends.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// testEnv is the worker of one cluster with a fake backend. All its clusters are
// engaged with it.
type testEnv struct {
	*worker.Worker
	options *worker.Options
	running sync.WaitGroup

	mu          sync.Mutex // guards the next three fields
	transitions []string
	engaged     []*worker.Cluster
	connections []*fakeConnection

	// What the backend and Engage do. Nil functions succeed.
	connect    func(ctx context.Context, profile *inventory.Profile) error
	probe      func(ctx context.Context, server string) (uid string, err error)
	newCluster error
	start      func(ctx context.Context) error
	sync       func(ctx context.Context) bool
	engage     func(ctx context.Context) error
	switches   bool // connections can be switched

	suspect  atomic.Bool  // a request of a controller has failed
	lastData atomic.Int64 // time.Time.UnixNano
}

// inBubble runs a test in virtual time. Its worker must leave no goroutine and no
// open connection.
func inBubble(t *testing.T, test func(t *testing.T, g *WithT, env *testEnv)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		env := &testEnv{switches: true}
		env.options = &worker.Options{
			Backend:   env,
			Aware:     env,
			Limiter:   admission.NewLimiter(2, clock.RealClock{}),
			Throttles: worker.NewThrottles(minBackoff, maxBackoff),
			Stopped:   &worker.StoppedWorkers{},
			Clock:     clock.RealClock{},

			ConnectTimeout: connectTimeout,
			MinBackoff:     minBackoff, MaxBackoff: maxBackoff,

			ProbeInterval: probeInterval, ProbeTimeout: 5 * time.Second,
			ProbeFailureThreshold: 3, DropAfter: dropAfter,

			IdentityChanged: func(*worker.Worker) {},

			Transition: func(state worker.State, reason worker.Reason) {
				env.mu.Lock()
				defer env.mu.Unlock()
				env.transitions = append(env.transitions, string(state)+" "+string(reason))
			},
		}
		test(t, g, env)
		env.stop()
		for _, c := range env.connections {
			g.Expect(c.isReleased()).To(BeTrue(), "the connection to %s is released", c.server)
		}
		g.Expect(freeSlots(env.options.Limiter)).To(Equal(2), "free startup slots")
	})
}

// freeSlots returns how many of two slots can be acquired at once.
func freeSlots(l *admission.Limiter) (free int) {
	for range 2 {
		ctx, cancel := context.WithCancel(context.Background())
		slot, err := l.Acquire(ctx, admission.Failed, cancel)
		cancel()
		if err == nil {
			defer slot.Release()
			free++
		}
	}
	return free
}

// add runs a worker for the profile after the current one.
func (e *testEnv) add(t *testing.T, profile *inventory.Profile) {
	t.Helper()
	previous := e.Worker
	e.Worker = worker.New(context.Background(), e.options, "eu", profile)
	added := e.Worker
	e.running.Go(func() { added.Run(previous) })
	synctest.Wait()
}

// update passes a profile to the worker.
func (e *testEnv) update(profile *inventory.Profile) {
	e.Update(profile)
	synctest.Wait()
}

// stop stops the worker and returns when it has ended.
func (e *testEnv) stop() {
	if e.Worker != nil {
		e.Stop()
	}
	e.running.Wait()
	synctest.Wait()
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// take returns the transitions since the last call.
func (e *testEnv) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := e.transitions
	e.transitions = nil
	return taken
}

// engagements returns how often a cluster was engaged.
func (e *testEnv) engagements() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.engaged)
}

// connects returns how many connections were made.
func (e *testEnv) connects() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.connections)
}

// Connect implements worker.Backend.
func (e *testEnv) Connect(ctx context.Context, profile *inventory.Profile) (worker.Connection, error) {
	if e.connect != nil {
		if err := e.connect(ctx, profile); err != nil {
			return nil, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &fakeConnection{env: e, server: profile.Status.AccessProviders[0].Cluster.Server, switchable: e.switches}
	e.connections = append(e.connections, c)
	return c, nil
}

// Indexed implements worker.Backend.
func (e *testEnv) Indexed(_ multicluster.ClusterName, cl cluster.Cluster) cluster.Cluster { return cl }

// Engage implements multicluster.Aware.
func (e *testEnv) Engage(ctx context.Context, _ multicluster.ClusterName, cl cluster.Cluster) error {
	e.mu.Lock()
	e.engaged = append(e.engaged, cl.(*worker.Cluster))
	e.mu.Unlock()
	if e.engage != nil {
		return e.engage(ctx)
	}
	return nil
}

// fakeConnection is a worker.Connection. Its fingerprint is the server.
type fakeConnection struct {
	env        *testEnv
	switchable bool

	mu       sync.Mutex // guards what follows
	server   string
	released bool
	takenBy  *fakeConnection
}

func (c *fakeConnection) get() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

// isReleased reports whether the connection's resources are free.
func (c *fakeConnection) isReleased() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.takenBy != nil {
		return c.takenBy.isReleased()
	}
	return c.released
}

func (c *fakeConnection) Server() string      { return c.get() }
func (c *fakeConnection) Provider() string    { return "fake" }
func (c *fakeConnection) Fingerprint() string { return c.get() }
func (c *fakeConnection) Expiry() time.Time   { return time.Time{} }
func (c *fakeConnection) CanProbe() bool      { return true }
func (c *fakeConnection) Suspect() bool       { return c.env.suspect.Swap(false) }
func (c *fakeConnection) AliveSince(since time.Time) bool {
	return time.Unix(0, c.env.lastData.Load()).After(since)
}
func (c *fakeConnection) OpenWatches() int         { return 0 }
func (c *fakeConnection) Close()                   {}
func (c *fakeConnection) CloseIdle()               {}
func (c *fakeConnection) Informers() *informer.Set { return nil }

func (c *fakeConnection) Probe(ctx context.Context) (string, error) {
	if c.env.probe != nil {
		return c.env.probe(ctx, c.get())
	}
	return "uid", nil
}

func (c *fakeConnection) NewCluster(context.Context, *inventory.Profile) (cluster.Cluster, error) {
	return &fakeCluster{env: c.env}, c.env.newCluster
}

func (c *fakeConnection) Config() *rest.Config {
	if !c.switchable {
		return nil
	}
	return &rest.Config{Host: c.get()}
}

func (c *fakeConnection) Switch(next worker.Connection) bool {
	if !c.switchable {
		return false
	}
	n := next.(*fakeConnection)
	server := n.get()
	n.mu.Lock()
	n.takenBy = c
	n.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = server
	return true
}

func (c *fakeConnection) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = true
}

// fakeCluster runs until its context ends.
type fakeCluster struct {
	cluster.Cluster
	env *testEnv
}

func (c *fakeCluster) Start(ctx context.Context) error {
	if c.env.start != nil {
		return c.env.start(ctx)
	}
	<-ctx.Done()
	return nil
}

func (c *fakeCluster) GetCache() cache.Cache { return fakeCache{env: c.env} }

type fakeCache struct {
	cache.Cache
	env *testEnv
}

func (c fakeCache) WaitForCacheSync(ctx context.Context) bool {
	return c.env.sync == nil || c.env.sync(ctx)
}

// profile returns a profile with the server.
func profile(server string) *inventory.Profile {
	p := &inventory.Profile{}
	p.Namespace, p.Name, p.UID = "fleet", "eu", types.UID("profile")
	p.Status.AccessProviders = []inventory.AccessProvider{{Name: "test"}}
	p.Status.AccessProviders[0].Cluster.Server = server
	return p
}

// withClusterID returns the profile with a cluster ID.
func withClusterID(p *inventory.Profile, id string) *inventory.Profile {
	p = p.DeepCopy()
	p.Status.Properties = []v1alpha1.Property{{Name: inventory.PropertyClusterID, Value: id}}
	return p
}

// is asserts the state, the reason and a part of the last error.
func (e *testEnv) is(g *WithT, state worker.State, reason worker.Reason, lastError string) {
	status := e.Status()
	g.ExpectWithOffset(1, string(status.State)+" "+string(status.Reason)).To(Equal(string(state) + " " + string(reason)))
	if lastError == "" {
		g.ExpectWithOffset(1, status.LastError).To(BeEmpty())
	} else {
		g.ExpectWithOffset(1, status.LastError).To(ContainSubstring(lastError))
	}
}
