// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multi_test

import (
	"context"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	SetDefaultEventuallyTimeout(mctest.Timeout)
	goleak.VerifyTestMain(m)
}

type fakeCluster struct{ cluster.Cluster }

// fake is a provider whose runs are the calls of start.
type fake struct {
	start   func(ctx context.Context, aware multicluster.Aware, run int) error
	cluster cluster.Cluster
	index   func(ctx context.Context) error

	mu     sync.Mutex // guards what follows
	runs   int
	fields []string
}

func (f *fake) Start(ctx context.Context, aware multicluster.Aware) error {
	f.mu.Lock()
	f.runs++
	run := f.runs
	f.mu.Unlock()
	return f.start(ctx, aware, run)
}

func (f *fake) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	switch name {
	case "eu":
		return f.cluster, nil
	case "waiting":
		return nil, multicluster.NotReadyError(name, "still asleep")
	}
	return nil, multicluster.NotFoundError(name)
}

func (f *fake) IndexField(ctx context.Context, _ client.Object, field string, _ client.IndexerFunc) error {
	f.mu.Lock()
	f.fields = append(f.fields, field)
	f.mu.Unlock()
	if f.index != nil {
		return f.index(ctx)
	}
	return nil
}

func (f *fake) indexed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.fields...)
}

func (f *fake) started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs
}

// restartable is a fake that can be started again.
type restartable struct{ *fake }

func (restartable) CanRestart() bool { return true }

// engaging returns a fake that engages the cluster eu until it ends.
func engaging() *fake {
	f := &fake{cluster: &fakeCluster{}}
	f.start = func(ctx context.Context, aware multicluster.Aware, _ int) error {
		if err := aware.Engage(ctx, "eu", f.cluster); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
	return f
}

// recorder is an Aware with the clusters that are engaged now.
type recorder struct {
	mu      sync.Mutex // guards engaged
	engaged map[multicluster.ClusterName]context.Context
}

func (r *recorder) Engage(ctx context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engaged == nil {
		r.engaged = map[multicluster.ClusterName]context.Context{}
	}
	r.engaged[name] = ctx
	return nil
}

func (r *recorder) of(name multicluster.ClusterName) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engaged[name]
}

func (r *recorder) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := []string{}
	for name, ctx := range r.engaged {
		if ctx.Err() == nil {
			names = append(names, name.String())
		}
	}
	return names
}
