// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// replica is one process of a program. Each of its controllers watches a kind of
// its own, so that the servers can distinguish them.
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

// newReplica returns a replica that has not been started.
func newReplica(t *testing.T, home *mctest.Cluster, members *mctest.Fleet, opts ...mcmanager.Option) *replica {
	t.Helper()
	r := &replica{
		provider:  &provider{servers: map[multicluster.ClusterName]*mctest.Cluster{}, started: make(chan struct{})},
		byDefault: newRecorder(), warm: newRecorder(), always: newRecorder(),
		ended: make(chan error, 1),
	}
	for i, server := range members.Clusters() {
		r.provider.servers[multicluster.ClusterName(fmt.Sprint("c", i))] = server
	}
	options := mctest.ManagerOptions()
	options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, "program", "default"
	options.LeaderElectionReleaseOnCancel = true
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = new(5*time.Second), new(3*time.Second), new(100*time.Millisecond)
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

// start runs the replica until stop is called or the test ends. Its error goes
// to ended: a replica that can no longer renew its lease returns one.
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

// leads reports whether the replica has been elected.
func (r *replica) leads() bool {
	select {
	case <-r.mgr.Elected():
		return true
	default:
		return false
	}
}

// warmedUp counts the clusters in which the sources of the controller with
// EnableWarmup have synced.
func (r *replica) warmedUp() int {
	synced := 0
	for _, status := range r.warmStatus() {
		if status.UnsyncedSources == 0 {
			synced++
		}
	}
	return synced
}

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
