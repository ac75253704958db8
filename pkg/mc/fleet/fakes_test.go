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
	"github.com/onsi/gomega"
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
	gomega.SetDefaultEventuallyTimeout(mctest.Timeout)
	goleak.VerifyTestMain(m)
}

// profile returns a profile with the server.
func profile(name, server string) *inventory.Profile {
	p := &inventory.Profile{}
	p.Namespace, p.Name, p.UID = "fleet", name, types.UID(name)
	p.Status.AccessProviders = []inventory.AccessProvider{{Name: "test"}}
	p.Status.AccessProviders[0].Cluster.Server = server
	return p
}

func serverOf(p *inventory.Profile) string { return p.Status.AccessProviders[0].Cluster.Server }

// fakeSource is an inventory.Source that a test writes to.
type fakeSource struct {
	events chan func(inventory.Sink)
}

func newFakeSource() *fakeSource {
	return &fakeSource{events: make(chan func(inventory.Sink))}
}

func (l *fakeSource) Run(ctx context.Context, sink inventory.Sink) error {
	sink.Synced()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-l.events:
			event(sink)
		}
	}
}

// put returns when the fleet has the profiles.
func (l *fakeSource) put(profiles ...*inventory.Profile) {
	for _, p := range profiles {
		l.events <- func(sink inventory.Sink) { sink.Put(p) }
	}
}

func (l *fakeSource) remove(name string) {
	l.events <- func(sink inventory.Sink) { sink.Remove(inventory.Key{Namespace: "fleet", Name: name}) }
}

// fakeMethod is a credentials.Method with a configuration for each server.
type fakeMethod struct {
	mu       sync.Mutex
	configs  map[string]*rest.Config
	resolved int
	changed  []func()
}

// NotifyChange implements credentials.ChangeNotifier.
func (m *fakeMethod) NotifyChange(_ context.Context, changed func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed = append(m.changed, changed)
}

// change notifies the fleet, as a new provider file would.
func (m *fakeMethod) change() {
	m.mu.Lock()
	changed := m.changed
	m.mu.Unlock()
	for _, f := range changed {
		f()
	}
}

// set sets the configuration for the server of profiles.
func (m *fakeMethod) set(server string, config *rest.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.configs[server] = config
}

func newFakeMethod(clusters ...*mctest.Cluster) *fakeMethod {
	m := &fakeMethod{configs: map[string]*rest.Config{}}
	for _, c := range clusters {
		m.add(c.Config())
	}
	return m
}

func (m *fakeMethod) add(config *rest.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.configs[config.Host] = config
}

func (m *fakeMethod) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resolved
}

func (m *fakeMethod) Resolve(_ context.Context, p *inventory.Profile) (*credentials.Access, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resolved++
	server := serverOf(p)
	config, ok := m.configs[server]
	if !ok {
		return nil, fmt.Errorf("no credentials for %q", server)
	}
	return credentials.FromRESTConfig(config), nil
}

// awareRecorder is a multicluster.Aware that records engagements.
type awareRecorder struct {
	mu     sync.Mutex
	all    []engagement
	health map[multicluster.ClusterName][]bool
	fail   error
}

// recordingComponent is the multicluster.Component of a recorder.
type recordingComponent struct {
	*awareRecorder
	name multicluster.ClusterName
}

func (p recordingComponent) ClusterBacklog() int { return 7 }

func (p recordingComponent) SetClusterHealthy(healthy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.health == nil {
		p.health = map[multicluster.ClusterName][]bool{}
	}
	p.health[p.name] = append(p.health[p.name], healthy)
}

// healthOf returns all changes of a cluster's health so far.
func (e *awareRecorder) healthOf(name multicluster.ClusterName) []bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]bool(nil), e.health[name]...)
}

type engagement struct {
	name    multicluster.ClusterName
	cluster cluster.Cluster
	ctx     context.Context
}

func (e *awareRecorder) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	multicluster.EngagementFrom(ctx).Join(ctx, recordingComponent{e, name})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, engagement{name, cl, ctx})
	return e.fail
}

func (e *awareRecorder) setFail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = err
}

// of returns all engagements of a cluster so far.
func (e *awareRecorder) of(name multicluster.ClusterName) []engagement {
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

// testEnv is a fleet with its source, its credentials and a recorder that clusters
// are engaged with.
type testEnv struct {
	*fleet.Fleet
	source      *fakeSource
	credentials *fakeMethod
	aware       *awareRecorder
	stop        func()
}

// start runs a fleet until the test ends.
func start(t *testing.T, clusters []*mctest.Cluster, change ...func(*fleet.Options)) *testEnv {
	t.Helper()
	return startWith(t, clusters, func(e *awareRecorder) multicluster.Aware { return e }, change...)
}

// startWith is start with an Aware around the recorder.
func startWith(t *testing.T, clusters []*mctest.Cluster, aware func(*awareRecorder) multicluster.Aware, change ...func(*fleet.Options)) *testEnv {
	t.Helper()
	return startIn(t.Context(), t, clusters, aware, change...)
}

// startIn is startWith in a context, for example with a logger.
func startIn(ctx context.Context, t *testing.T, clusters []*mctest.Cluster, aware func(*awareRecorder) multicluster.Aware, change ...func(*fleet.Options)) *testEnv {
	t.Helper()
	env := &testEnv{source: newFakeSource(), credentials: newFakeMethod(clusters...), aware: &awareRecorder{}}
	options := fleet.Options{
		Source:      env.source,
		Credentials: env.credentials,
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
	if env.Fleet, err = fleet.New(options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- env.Start(ctx, aware(env.aware)) }()
	var once sync.Once
	env.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the fleet failed: %v", err)
			}
		})
	}
	t.Cleanup(env.stop)
	return env
}

// state returns a function that returns the state of a cluster, "" if there is none.
func (env *testEnv) state(name multicluster.ClusterName) func() fleet.State {
	return func() fleet.State { return env.status(name).State }
}

func (env *testEnv) status(name multicluster.ClusterName) fleet.ClusterStatus {
	for _, s := range env.Status() {
		if s.Name == name {
			return s
		}
	}
	return fleet.ClusterStatus{}
}
