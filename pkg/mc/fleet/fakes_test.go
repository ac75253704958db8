// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// profile returns a profile that leads to the server.
func profile(name, server string) *inventory.Profile {
	p := &inventory.Profile{}
	p.Namespace, p.Name, p.UID = "fleet", name, types.UID(name)
	p.Status.AccessProviders = []inventory.AccessProvider{{Name: "test"}}
	p.Status.AccessProviders[0].Cluster.Server = server
	return p
}

// list is a source that a test writes.
type list struct {
	events chan func(inventory.Sink)
}

func newList() *list {
	return &list{events: make(chan func(inventory.Sink))}
}

func (l *list) Run(ctx context.Context, sink inventory.Sink) error {
	sink.Synced()
	for {
		select {
		case <-ctx.Done():
			return nil
		case tell := <-l.events:
			tell(sink)
		}
	}
}

// put returns when the fleet has been told.
func (l *list) put(profiles ...*inventory.Profile) {
	for _, p := range profiles {
		l.events <- func(sink inventory.Sink) { sink.Put(p) }
	}
}

func (l *list) remove(name string) {
	l.events <- func(sink inventory.Sink) { sink.Remove(inventory.Key{Namespace: "fleet", Name: name}) }
}

// method opens clusters by their current address.
type method struct {
	mu       sync.Mutex
	configs  map[string]*rest.Config
	resolved int
	changed  []func()
}

// NotifyChange implements credentials.ChangeNotifier.
func (m *method) NotifyChange(_ context.Context, changed func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed = append(m.changed, changed)
}

// change tells of a change, as a new provider file would.
func (m *method) change() {
	m.mu.Lock()
	changed := m.changed
	m.mu.Unlock()
	for _, f := range changed {
		f()
	}
}

// lead makes a server's address lead to another configuration.
func (m *method) lead(server string, config *rest.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.configs[server] = config
}

func newMethod(clusters ...*mctest.Cluster) *method {
	m := &method{configs: map[string]*rest.Config{}}
	for _, c := range clusters {
		m.add(c.Config())
	}
	return m
}

func (m *method) add(config *rest.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.configs[config.Host] = config
}

func (m *method) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resolved
}

func (m *method) Resolve(_ context.Context, p *inventory.Profile) (*credentials.Access, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resolved++
	server := p.Status.AccessProviders[0].Cluster.Server
	config, ok := m.configs[server]
	if !ok {
		return nil, fmt.Errorf("no credentials for %q", server)
	}
	return credentials.FromRESTConfig(config), nil
}

// engagements is what is told of clusters in the place of a manager.
type engagements struct {
	mu     sync.Mutex
	all    []engagement
	health map[multicluster.ClusterName][]bool
	fail   error
}

// part is the part that engagements take in the engagement of one cluster.
type part struct {
	*engagements
	name multicluster.ClusterName
}

func (p part) ClusterBacklog() int { return 7 }

func (p part) SetClusterHealthy(healthy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.health == nil {
		p.health = map[multicluster.ClusterName][]bool{}
	}
	p.health[p.name] = append(p.health[p.name], healthy)
}

// healthOf returns what was told of a cluster's health so far.
func (e *engagements) healthOf(name multicluster.ClusterName) []bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]bool(nil), e.health[name]...)
}

type engagement struct {
	name    multicluster.ClusterName
	cluster cluster.Cluster
	ctx     context.Context
}

func (e *engagements) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	multicluster.EngagementFrom(ctx).Join(ctx, part{e, name})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, engagement{name, cl, ctx})
	return e.fail
}

func (e *engagements) setFail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = err
}

// of returns the engagements of a cluster so far.
func (e *engagements) of(name multicluster.ClusterName) []engagement {
	e.mu.Lock()
	defer e.mu.Unlock()
	var of []engagement
	for _, one := range e.all {
		if one.name == name {
			of = append(of, one)
		}
	}
	return of
}

// world is a fleet under test with all that is around it.
type world struct {
	*fleet.Fleet
	list        *list
	method      *method
	engagements *engagements
	stop        func()
}

// start runs a fleet until the test ends.
func start(t *testing.T, clusters []*mctest.Cluster, change ...func(*fleet.Options)) *world {
	t.Helper()
	return startWith(t, clusters, func(e *engagements) multicluster.Aware { return e }, change...)
}

// startWith is start with something around the engagements.
func startWith(t *testing.T, clusters []*mctest.Cluster, aware func(*engagements) multicluster.Aware, change ...func(*fleet.Options)) *world {
	t.Helper()
	return startIn(t.Context(), t, clusters, aware, change...)
}

// startIn is startWith with what is in the context, such as a logger.
func startIn(ctx context.Context, t *testing.T, clusters []*mctest.Cluster, aware func(*engagements) multicluster.Aware, change ...func(*fleet.Options)) *world {
	t.Helper()
	w := &world{list: newList(), method: newMethod(clusters...), engagements: &engagements{}}
	options := fleet.Options{
		Source:      w.list,
		Credentials: w.method,
		Connection: fleet.ConnectionOptions{
			ConnectTimeout: 5 * time.Second,
			MinBackoff:     10 * time.Millisecond,
			MaxBackoff:     50 * time.Millisecond,
		},
	}
	for _, c := range change {
		c(&options)
	}
	var err error
	if w.Fleet, err = fleet.New(options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx, aware(w.engagements)) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the fleet failed: %v", err)
			}
		})
	}
	t.Cleanup(w.stop)
	return w
}

// state returns the state of a cluster, "" if it is not on the roll.
func (w *world) state(name multicluster.ClusterName) func() fleet.State {
	return func() fleet.State { return w.status(name).State }
}

func (w *world) status(name multicluster.ClusterName) fleet.ClusterStatus {
	for _, s := range w.Status() {
		if s.Name == name {
			return s
		}
	}
	return fleet.ClusterStatus{}
}
