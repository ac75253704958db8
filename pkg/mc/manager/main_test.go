// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// newManager returns a manager that the test starts.
func newManager(t *testing.T, local *mctest.Cluster, provider multicluster.Provider, opts ...mcmanager.Option) mcmanager.Manager {
	t.Helper()
	mgr, err := mcmanager.New(local.Config(), provider, mctest.ManagerOptions(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// fakeCluster has no methods.
type fakeCluster struct {
	cluster.Cluster
	_ int // so that two of them are not the same
}

// provider has fixed clusters and does not run.
type provider struct {
	clusters map[multicluster.ClusterName]cluster.Cluster
	err      error // of IndexField

	mu      sync.Mutex
	indexed []string
}

func (p *provider) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	if cl, ok := p.clusters[name]; ok {
		return cl, nil
	}
	return nil, multicluster.NotFoundError(name)
}

func (p *provider) IndexField(_ context.Context, _ client.Object, field string, _ client.IndexerFunc) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.indexed = append(p.indexed, field)
	return p.err
}

// runningProvider runs until its context ends, or returns the result of fail.
type runningProvider struct {
	provider
	fail func(attempt int) error

	mu     sync.Mutex
	starts []multicluster.Aware
	times  []time.Time
}

func (p *runningProvider) Start(ctx context.Context, aware multicluster.Aware) error {
	p.mu.Lock()
	p.starts = append(p.starts, aware)
	p.times = append(p.times, time.Now())
	attempt := len(p.starts)
	p.mu.Unlock()
	if p.fail != nil {
		return p.fail(attempt)
	}
	<-ctx.Done()
	return nil
}

// restartable is a runningProvider that can be started again.
type restartable struct{ *runningProvider }

func (restartable) CanRestart() bool { return true }

func (p *runningProvider) startedAt() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]time.Time(nil), p.times...)
}

func (p *runningProvider) started() []multicluster.Aware {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]multicluster.Aware(nil), p.starts...)
}

// component runs, and records its engagements.
type component struct {
	mu      sync.Mutex
	runs    int
	engaged []multicluster.ClusterName
}

func (c *component) Start(ctx context.Context) error {
	c.mu.Lock()
	c.runs++
	c.mu.Unlock()
	<-ctx.Done()
	return nil
}

func (c *component) Engage(_ context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	if cl == nil {
		return errors.New("no cluster")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engaged = append(c.engaged, name)
	return nil
}

func (c *component) running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs
}

func (c *component) engagements() []multicluster.ClusterName {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]multicluster.ClusterName(nil), c.engaged...)
}

// exampleTB lets an example use mctest.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (tb *exampleTB) Helper()                           {}
func (tb *exampleTB) Cleanup(f func())                  { tb.cleanups = append(tb.cleanups, f) }
func (tb *exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// exampleServers runs two API servers until the function is called.
func exampleServers() (hub, eu *rest.Config, closeServers func()) {
	tb := &exampleTB{}
	fleet := mctest.NewFleet(tb, 2)
	return fleet.Cluster(0).Config(), fleet.Cluster(1).Config(), func() {
		for _, f := range tb.cleanups {
			f()
		}
	}
}
