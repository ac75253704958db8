// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package leader_test runs several replicas of one program, of which one at a
// time is the leader.
package leader_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

const (
	// patience is how long a condition is waited for.
	patience = 30 * time.Second
	// calm is how long nothing more must happen.
	calm = 300 * time.Millisecond
)

// provider runs a cluster on each of its servers.
type provider struct {
	clusters.Clusters[cluster.Cluster]
	servers map[multicluster.ClusterName]*mctest.Cluster
	started chan struct{} // closed by Start
}

func (p *provider) Start(ctx context.Context, aware multicluster.Aware) error {
	close(p.started)
	for _, name := range slices.Sorted(maps.Keys(p.servers)) {
		cl, err := cluster.New(p.servers[name].Config())
		if err != nil {
			return multicluster.TerminalError(err)
		}
		if err := p.Add(ctx, name, cl, aware); err != nil {
			return multicluster.TerminalError(err)
		}
	}
	<-ctx.Done()
	return nil
}

func (p *provider) runs() bool {
	select {
	case <-p.started:
		return true
	default:
		return false
	}
}

// recorder notes how often it reconciles what, and whether it is at work.
type recorder struct {
	block bool // until the context ends

	mu      sync.Mutex
	times   map[string]int
	working int
}

func (r *recorder) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	r.mu.Lock()
	if r.times == nil {
		r.times = map[string]int{}
	}
	r.times[req.ClusterName.String()+"/"+req.Name]++
	r.working++
	r.mu.Unlock()
	if r.block {
		<-ctx.Done()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.working--
	return reconcile.Result{}, nil
}

func (r *recorder) seen() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.times)
}

func (r *recorder) busy() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.working
}

// replica is one process of the program. Each of its controllers watches a kind
// of its own, so that the servers can tell them apart.
type replica struct {
	mgr      mcmanager.Manager
	provider *provider

	byDefault *recorder // of config maps
	warm      *recorder // of secrets, with EnableWarmup
	always    *recorder // of service accounts, with NeedLeaderElection false

	warmStatus func() []mccontroller.ClusterStatus

	stop  context.CancelFunc
	ended chan error
}

// newReplica returns a replica that is not started.
func newReplica(t *testing.T, home *mctest.Cluster, members *mctest.Fleet, opts ...mcmanager.Option) *replica {
	t.Helper()
	r := &replica{
		provider:  &provider{servers: map[multicluster.ClusterName]*mctest.Cluster{}, started: make(chan struct{})},
		byDefault: &recorder{}, warm: &recorder{}, always: &recorder{},
		ended: make(chan error, 1),
	}
	for i, server := range members.Clusters() {
		r.provider.servers[multicluster.ClusterName(fmt.Sprint("c", i))] = server
	}
	options := mcmanager.Options{
		Metrics:        metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "program", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(5 * time.Second), RenewDeadline: new(3 * time.Second), RetryPeriod: new(100 * time.Millisecond),
	}
	options.Controller.SkipNameValidation = new(true)
	var err error
	r.mgr, err = mcmanager.New(home.Config(), r.provider, options, opts...)
	if err != nil {
		t.Fatal(err)
	}
	r.add(t, "default", &corev1.ConfigMap{}, r.byDefault, mccontroller.Options{})
	warm := r.add(t, "warm", &corev1.Secret{}, r.warm, mccontroller.Options{EnableWarmup: new(true)})
	r.warmStatus = warm.(mccontroller.StatusReporter).ClusterStatus
	r.add(t, "always", &corev1.ServiceAccount{}, r.always, mccontroller.Options{NeedLeaderElection: new(false)})
	return r
}

func (r *replica) add(t *testing.T, name string, obj client.Object, rec *recorder, options controller.TypedOptions[mcreconcile.Request]) mccontroller.Controller {
	t.Helper()
	c, err := mcbuilder.ControllerManagedBy(r.mgr).Named(name).For(obj).WithOptions(options).Build(rec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs the replica until stop is called or the test ends.
func (r *replica) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- r.mgr.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// leads tells whether the replica has been elected.
func (r *replica) leads() bool {
	select {
	case <-r.mgr.Elected():
		return true
	default:
		return false
	}
}

// warmedUp is the number of clusters in which the controller that is warmed up
// has all it needs.
func (r *replica) warmedUp() int {
	synced := 0
	for _, status := range r.warmStatus() {
		if status.UnsyncedSources == 0 {
			synced++
		}
	}
	return synced
}
