// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// logs records the lines with one message.
type logs struct {
	message   string
	verbosity int

	mu    sync.Mutex
	lines []map[string]any
}

func (l *logs) logger() logr.Logger {
	return funcr.NewJSON(func(text string) {
		line := map[string]any{}
		if err := json.Unmarshal([]byte(text), &line); err != nil || line["msg"] != l.message {
			return
		}
		for _, key := range []string{"logger", "level", "msg", "reconcileID"} {
			delete(line, key)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{Verbosity: l.verbosity})
}

func (l *logs) seen() []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]map[string]any(nil), l.lines...)
}

// logging returns a reconciler that logs the message.
func logging(message string) mcreconcile.Reconciler {
	return mcreconcile.Func(func(ctx context.Context, _ mcreconcile.Request) (reconcile.Result, error) {
		log.FromContext(ctx).Info(message)
		return reconcile.Result{}, nil
	})
}

func TestNameAndLogger(t *testing.T) {
	about := map[string]any{"cluster": "eu", "namespace": "default", "name": "a"}
	with := func(more map[string]any) map[string]any {
		all := maps.Clone(about)
		maps.Copy(all, more)
		return all
	}
	ref := map[string]any{"namespace": "default", "name": "a"}
	for _, tc := range []struct {
		name  string
		build func(*mcbuilder.Builder, *logs) *mcbuilder.Builder
		want  map[string]any
	}{
		{
			name:  "For",
			build: func(b *mcbuilder.Builder, _ *logs) *mcbuilder.Builder { return b.For(&corev1.ConfigMap{}) },
			want:  with(map[string]any{"controller": "configmap", "controllerGroup": "", "controllerKind": "ConfigMap", "ConfigMap": ref}),
		},
		{
			name:  "For and Named",
			build: func(b *mcbuilder.Builder, _ *logs) *mcbuilder.Builder { return b.Named("own").For(&corev1.ConfigMap{}) },
			want:  with(map[string]any{"controller": "own", "controllerGroup": "", "controllerKind": "ConfigMap", "ConfigMap": ref}),
		},
		{
			name:  "Named",
			build: func(b *mcbuilder.Builder, _ *logs) *mcbuilder.Builder { return watches[2].watch(b.Named("own")) },
			want:  with(map[string]any{"controller": "own", "object": ref}),
		},
		{
			name: "WithLogConstructor",
			build: func(b *mcbuilder.Builder, own *logs) *mcbuilder.Builder {
				return b.For(&corev1.ConfigMap{}).WithLogConstructor(func(req *mcreconcile.Request) logr.Logger {
					if req == nil {
						return logr.Discard()
					}
					return own.logger().WithValues("request", req.String())
				})
			},
			want: map[string]any{"request": "cluster://eu/default/a"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			own := &logs{message: "here"}
			w := newFixture(t, nil, func(o *mcmanager.Options) { o.Logger = own.logger() })
			g.Expect(w.eu.Create(configMap("a"))).To(Succeed())
			g.Expect(tc.build(mcbuilder.ControllerManagedBy(w.mgr), own).Complete(logging("here"))).To(Succeed())
			mctest.StartManager(t, w.mgr)
			g.Eventually(own.seen).WithTimeout(mctest.Timeout).Should(ConsistOf(tc.want))
		})
	}
}

// gate is a reconciler that blocks, and counts the blocked calls.
type gate struct {
	open    chan struct{}
	waiting atomic.Int32
	most    atomic.Int32
}

func (g *gate) Reconcile(context.Context, mcreconcile.Request) (reconcile.Result, error) {
	g.most.Store(max(g.most.Load(), g.waiting.Add(1)))
	defer g.waiting.Add(-1)
	<-g.open
	return reconcile.Result{}, nil
}

func TestMaxConcurrentReconciles(t *testing.T) {
	perKind := map[string]int{"Secret": 7, "ConfigMap": 3, "ReplicaSet.apps": 5}
	for _, tc := range []struct {
		name    string
		perKind map[string]int
		all     int
		options mccontroller.Options
		want    int
	}{
		{name: "default", want: 1},
		{name: "MaxConcurrentReconciles of the manager", all: 2, want: 2},
		{name: "GroupKindConcurrency of the manager", perKind: perKind, all: 2, want: 3},
		{name: "options of the controller", perKind: perKind, all: 2, options: mccontroller.Options{MaxConcurrentReconciles: 4}, want: 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var objects []client.Object
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				objects = append(objects, configMap(name))
			}
			w := newFixture(t, objects, func(o *mcmanager.Options) {
				o.Controller.GroupKindConcurrency, o.Controller.MaxConcurrentReconciles = tc.perKind, tc.all
			})
			r := &gate{open: make(chan struct{})}
			g.Expect(mcbuilder.ControllerManagedBy(w.mgr).For(&corev1.ConfigMap{}).WithOptions(tc.options).Complete(r)).To(Succeed())
			mctest.StartManager(t, w.mgr)
			defer close(r.open)
			g.Eventually(r.waiting.Load).WithTimeout(mctest.Timeout).Should(BeEquivalentTo(tc.want))
			g.Consistently(r.most.Load).WithTimeout(settle).Should(BeEquivalentTo(tc.want))
		})
	}
}

func TestWithClusterNotFoundWrapper(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(*mcbuilder.Builder) *mcbuilder.Builder
		want  bool // retried
	}{
		{"default", func(b *mcbuilder.Builder) *mcbuilder.Builder { return b }, false},
		{"true", func(b *mcbuilder.Builder) *mcbuilder.Builder { return b.WithClusterNotFoundWrapper(true) }, false},
		{"false", func(b *mcbuilder.Builder) *mcbuilder.Builder { return b.WithClusterNotFoundWrapper(false) }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			w := newFixture(t, nil)
			g.Expect(w.eu.Create(configMap("a"))).To(Succeed())
			var calls atomic.Int32
			g.Expect(tc.build(mcbuilder.ControllerManagedBy(w.mgr).For(&corev1.ConfigMap{})).
				Complete(mcreconcile.Func(func(ctx context.Context, _ mcreconcile.Request) (reconcile.Result, error) {
					calls.Add(1)
					_, err := w.mgr.GetCluster(ctx, "gone")
					return reconcile.Result{}, err
				}))).To(Succeed())
			mctest.StartManager(t, w.mgr)
			if tc.want {
				g.Eventually(calls.Load).WithTimeout(mctest.Timeout).Should(BeNumerically(">", 2))
				return
			}
			g.Eventually(calls.Load).WithTimeout(mctest.Timeout).Should(BeEquivalentTo(1))
			g.Consistently(calls.Load).WithTimeout(settle).Should(BeEquivalentTo(1))
		})
	}
}

// A map function that preserves clusters may misspell one.
func TestRequestForUnknownClusterIsLogged(t *testing.T) {
	g := NewWithT(t)
	own := &logs{message: "Dropped request: the reconciler needs a cluster that does not exist", verbosity: 1}
	w := newFixture(t, []client.Object{configMap("a")}, func(o *mcmanager.Options) { o.Logger = own.logger() })
	toTypo := func(context.Context, client.Object) []mcreconcile.Request {
		req := mcreconcile.Request{ClusterName: "uu"}
		req.Name = "a"
		return []mcreconcile.Request{req}
	}
	g.Expect(mcbuilder.ControllerManagedBy(w.mgr).Named("test").
		Watches(&corev1.ConfigMap{}, func(multicluster.ClusterName, cluster.Cluster) mchandler.EventHandler {
			return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(toTypo)
		}).
		Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			_, err := w.mgr.GetCluster(ctx, req.ClusterName)
			return reconcile.Result{}, err
		}))).To(Succeed())
	mctest.StartManager(t, w.mgr)
	g.Eventually(own.seen).WithTimeout(mctest.Timeout).Should(ContainElement(And(
		HaveKeyWithValue("cluster", "uu"),
		HaveKeyWithValue("error", `cluster "uu": cluster not found`),
	)))
}

// TestForbiddenWatch tests that a cluster where the kind cannot be watched does
// not affect the others, and is watched later.
func TestForbiddenWatch(t *testing.T) {
	g := NewWithT(t)
	w, rec := newFixture(t, []client.Object{configMap("a")}), &recorder[mcreconcile.Request]{}
	w.us.Fault(mctest.Forbidden.On("configmaps"))
	g.Expect(mcbuilder.ControllerManagedBy(w.mgr).For(&corev1.ConfigMap{}).
		WithOptions(mccontroller.Options{CacheSyncTimeout: time.Second}).Complete(rec)).To(Succeed())
	mctest.StartManager(t, w.mgr)
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf("eu/default/a"))
	g.Eventually(w.mgr.Elected()).WithTimeout(mctest.Timeout).Should(BeClosed())
	g.Consistently(rec.seen).WithTimeout(2 * settle).Should(ConsistOf("eu/default/a"))
	w.us.Clear()
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf("eu/default/a", "us/default/a"))
}
