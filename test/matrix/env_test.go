// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

type controllerStatus = mccontroller.ClusterStatus

// env is a manager with a fleet, and with a controller for each of three kinds.
type env struct {
	fleet       *fleet.Fleet
	resolver    *credentials.Resolver
	controllers map[string]mccontroller.Controller
	accounts    *accounts
	recorder    *recorder
	lists       *lists
	indexes     *indexes
	events      chan func(inventory.Sink)
	members     []*member
	stop        func()
}

// witnesses are the clusters that nothing happens to.
func (e *env) witnesses() []*member { return e.members[busy:] }

func newEnv(t *testing.T) (*env, error) {
	e := &env{
		controllers: map[string]mccontroller.Controller{},
		accounts:    &accounts{all: map[string]*plugin.Credential{}, hangs: map[string]bool{}},
		recorder:    &recorder{count: map[string]int{}, engaged: map[multicluster.ClusterName]int{}},
		lists:       &lists{members: map[string]string{}, queries: map[string][]string{}},
		indexes:     &indexes{},
		events:      make(chan func(inventory.Sink)),
	}
	var err error
	e.resolver, err = credentials.New(credentials.Options{
		Providers: []providerfile.Provider{{Name: "matrix", Rollcall: providerfile.Extensions{InProcess: "matrix"}}},
		Plugins:   []func() plugin.Plugin{func() plugin.Plugin { return e.accounts }},
		Timeout:   time.Second,
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(e.resolver.Close)
	e.fleet, err = fleet.New(fleet.Options{
		Source: inventory.Select(inventory.SourceFunc(e.run), func(p *inventory.Profile) bool {
			return p.Labels[selectedLabel] == "true"
		}),
		Credentials: e.resolver,
		Connection: fleet.ConnectionOptions{
			RESTOptions:    []func(*rest.Config) error{func(c *rest.Config) error { c.Wrap(e.lists.wrap); return nil }},
			ConnectTimeout: 10 * time.Second,
			MinBackoff:     10 * time.Millisecond, MaxBackoff: 200 * time.Millisecond,
			Probe: fleet.ProbeOptions{Interval: 100 * time.Millisecond, Timeout: time.Second},
		},
	})
	if err != nil {
		return nil, err
	}
	mgr, err := mcmanager.New(mctest.New(t).Config(), e.fleet, mctest.ManagerOptions())
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(e.recorder); err != nil {
		return nil, err
	}
	for kind, object := range map[string]client.Object{"ConfigMap": &corev1.ConfigMap{}, "Secret": &corev1.Secret{}, "Widget": widget("")} {
		e.controllers[kind], err = mcbuilder.ControllerManagedBy(mgr).
			For(object).
			WithOptions(mccontroller.Options{MaxConcurrentReconciles: 4}).
			Build(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
				cl, err := mgr.GetCluster(ctx, req.ClusterName)
				if err != nil {
					return reconcile.Result{}, err
				}
				read := object.DeepCopyObject().(client.Object)
				if err := cl.GetClient().Get(ctx, req.NamespacedName, read); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				e.recorder.reconcile(req.ClusterName, kind, req.Name)
				return reconcile.Result{}, nil
			}))
		if err != nil {
			return nil, err
		}
	}
	e.stop = mctest.StartManager(t, mgr)
	return e, nil
}

// run is the source of all profiles.
func (e *env) run(ctx context.Context, sink inventory.Sink) error {
	sink.Synced()
	for {
		select {
		case send := <-e.events:
			send(sink)
		case <-ctx.Done():
			return nil
		}
	}
}

func (e *env) controllerStatus(kind string, name multicluster.ClusterName) controllerStatus {
	for _, status := range e.controllers[kind].(mccontroller.StatusReporter).ClusterStatus() {
		if status.ClusterName == name {
			return status
		}
	}
	return controllerStatus{}
}

// checkNothingLeft checks what is left after stop. TestMain looks for goroutines.
func (e *env) checkNothingLeft() error {
	var errs []error
	if all := e.fleet.Status(); len(all) > 0 {
		errs = append(errs, fmt.Errorf("status of clusters: %v", all))
	}
	for kind, c := range e.controllers {
		if all := c.(mccontroller.StatusReporter).ClusterStatus(); len(all) > 0 {
			errs = append(errs, fmt.Errorf("status of the controller of %s: %v", kind, all))
		}
	}
	for _, m := range e.members {
		m.Clear() // Frozen connections cannot be counted as closed.
		errs = append(errs, eventually(func() error {
			if n, watches := m.Connections(), m.OpenWatches(""); n+watches > 0 {
				return fmt.Errorf("%s has %d connections, %d watches", m.name, n, watches)
			}
			return nil
		}))
	}
	return errors.Join(append(errs, e.checkMetrics())...)
}

// checkMetrics checks that no series has the name of a cluster or a state now.
func (e *env) checkMetrics() error {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return err
	}
	var errs []error
	for _, family := range families {
		for _, series := range family.GetMetric() {
			for _, m := range e.members {
				if strings.Contains(series.String(), m.Name()) {
					errs = append(errs, fmt.Errorf("metric %s: %v", family.GetName(), series))
				}
			}
			ours := strings.HasPrefix(family.GetName(), "rollcall_") && series.GetGauge() != nil
			if ours && !strings.HasPrefix(family.GetName(), "rollcall_credentials_") {
				errs = append(errs, fmt.Errorf("metric %s: %v", family.GetName(), series))
			}
		}
	}
	return errors.Join(errs...)
}

// recorder counts reconciles and engagements.
type recorder struct {
	mu      sync.Mutex // guards what follows
	count   map[string]int
	engaged map[multicluster.ClusterName]int
}

func (r *recorder) reconcile(name multicluster.ClusterName, kind, object string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[fmt.Sprint(name, kind, object)]++
}

func (r *recorder) reconciled(name multicluster.ClusterName, kind, object string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[fmt.Sprint(name, kind, object)] > 0
}

// Engage implements multicluster.Aware.
func (r *recorder) Engage(_ context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engaged[name]++
	return nil
}

// Start implements manager.Runnable.
func (r *recorder) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (r *recorder) engagementsOf(name multicluster.ClusterName) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engaged[name]
}

// lists counts the requests for all objects of a kind, which informers send.
type lists struct {
	mu      sync.Mutex // guards what follows
	members map[string]string
	queries map[string][]string // by member and resource
}

// register adds an address of a member.
func (l *lists) register(host, member string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members[strings.TrimPrefix(host, "https://")] = member
}

func (l *lists) of(member, resource string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.queries[member+"/"+resource])
}

func (l *lists) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		query := req.URL.Query()
		// A check of a kind has a limit of 1.
		if query.Get("watch") == "" && query.Get("limit") != "1" || query.Get("sendInitialEvents") == "true" {
			resource := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
			l.mu.Lock()
			key := l.members[req.URL.Host] + "/" + resource
			l.queries[key] = append(l.queries[key], req.Method+" "+req.URL.RawQuery)
			l.mu.Unlock()
		}
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }
