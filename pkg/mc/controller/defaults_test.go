// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// newFunc is New or NewUnmanaged.
type newFunc func(string, mcmanager.Manager, mccontroller.Options) (mccontroller.Controller, error)

// newManaged returns a controller of a manager with defaults for its controllers.
// The test starts the controller.
func newManaged(t *testing.T, newFunc newFunc, defaults manager.Options, options mccontroller.Options) mccontroller.Controller {
	t.Helper()
	defaults.Controller.SkipNameValidation = ptr.To(true)
	defaults.Metrics = metricsserver.Options{BindAddress: "0"}
	mgr, err := mcmanager.New(&rest.Config{Host: "https://127.0.0.1:1"}, nil, defaults)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newFunc("test", mgr, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaultsOfTheManager(t *testing.T) {
	const minute, hour = time.Minute, time.Hour
	for _, tc := range []struct {
		name        string
		manager     config.Controller
		controller  mccontroller.Options
		timeout     time.Duration // of reconciles
		syncTimeout time.Duration
		priorities  bool
		leadersOnly bool
		warmedUp    bool
	}{
		{
			name:    "built-in",
			timeout: 0, syncTimeout: 2 * minute, priorities: true, leadersOnly: true,
		},
		{
			name: "of the manager",
			manager: config.Controller{
				ReconciliationTimeout: minute, CacheSyncTimeout: minute, UsePriorityQueue: ptr.To(false),
				NeedLeaderElection: ptr.To(false), EnableWarmup: ptr.To(true),
			},
			timeout: minute, syncTimeout: minute, warmedUp: true,
		},
		{
			name: "overridden by the controller",
			manager: config.Controller{
				ReconciliationTimeout: minute, CacheSyncTimeout: minute, UsePriorityQueue: ptr.To(false),
				NeedLeaderElection: ptr.To(false), EnableWarmup: ptr.To(true),
			},
			controller: mccontroller.Options{
				ReconciliationTimeout: hour, CacheSyncTimeout: hour, UsePriorityQueue: ptr.To(true),
				NeedLeaderElection: ptr.To(true), EnableWarmup: ptr.To(false),
			},
			timeout: hour, syncTimeout: hour, priorities: true, leadersOnly: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var deadline time.Duration
				var order []string
				held := make(chan struct{})
				tc.controller.Reconciler = reconcilerFunc(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
					if at, ok := ctx.Deadline(); ok {
						deadline = time.Until(at)
					}
					<-held
					order = append(order, req.Name)
					return reconcile.Result{}, nil
				})
				c := newManaged(t, mccontroller.New, manager.Options{Controller: tc.manager}, tc.controller)
				src := newFakeSource("a")
				src.unsynced("us")
				g.Expect(c.MultiClusterWatch(src)).To(Succeed())
				g.Expect(c.(manager.LeaderElectionRunnable).NeedLeaderElection()).To(Equal(tc.leadersOnly))
				g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
				g.Expect(c.(interface{ Warmup(context.Context) error }).Warmup(t.Context())).To(Succeed())
				synctest.Wait()
				g.Expect(src.running("eu") > 0).To(Equal(tc.warmedUp))
				start(t, c)
				synctest.Wait()
				g.Expect(deadline).To(Equal(tc.timeout))

				q := src.queue("eu").(priorityqueue.PriorityQueue[mcreconcile.Request])
				q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, request("eu", "low"))
				q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(100)}, request("eu", "high"))
				close(held)
				synctest.Wait()
				want := []string{"a", "low", "high"}
				if tc.priorities {
					want = []string{"a", "high", "low"}
				}
				g.Expect(order).To(Equal(want))

				g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
				time.Sleep(tc.syncTimeout - time.Nanosecond)
				synctest.Wait()
				g.Expect(statusOf(c, "us").LastError).To(BeEmpty())
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				g.Expect(statusOf(c, "us").LastError).NotTo(BeEmpty())
			})
		})
	}
}

func TestResultPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var order []string
		_, src := run(t, reconcilerFunc(func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			order = append(order, req.Name)
			time.Sleep(time.Minute) // so that all delayed requests are due
			if req.Name == "a" && len(order) == 1 {
				return reconcile.Result{RequeueAfter: time.Second, Priority: ptr.To(100)}, nil
			}
			return reconcile.Result{}, nil
		}), mccontroller.Options{})
		for _, object := range []string{"b", "c", "d"} {
			src.enqueue("eu", object)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(order).To(Equal([]string{"a", "b", "a", "c", "d"}))
	})
}

// lines records log lines, as the key/values of each.
type lines struct {
	mu  sync.Mutex
	all []map[string]any
}

func (l *lines) logger() logr.Logger {
	return funcr.NewJSON(func(line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		values := map[string]any{}
		if err := json.Unmarshal([]byte(line), &values); err != nil {
			panic(err)
		}
		l.all = append(l.all, values)
	}, funcr.Options{})
}

func (l *lines) with(message string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var with []map[string]any
	for _, line := range l.all {
		if line["msg"] == message {
			with = append(with, line)
		}
	}
	return with
}

func TestLogLines(t *testing.T) {
	var ofManager, ofUnmanaged, ofControllers, own lines
	for _, tc := range []struct {
		name       string
		make       newFunc
		manager    manager.Options
		controller mccontroller.Options
		lines      *lines
	}{
		{"the manager's logger", mccontroller.New, manager.Options{Logger: ofManager.logger()}, mccontroller.Options{}, &ofManager},
		{"the manager's logger, unmanaged controller", mccontroller.NewUnmanaged, manager.Options{Logger: ofUnmanaged.logger()}, mccontroller.Options{SkipNameValidation: ptr.To(true)}, &ofUnmanaged},
		{
			"the manager's logger for controllers", mccontroller.New,
			manager.Options{Logger: logr.Discard(), Controller: config.Controller{Logger: ofControllers.logger()}},
			mccontroller.Options{}, &ofControllers,
		},
		{"the controller's own logger", mccontroller.New, manager.Options{Logger: logr.Discard()}, mccontroller.Options{Logger: own.logger()}, &own},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				tc.controller.Reconciler = reconcilerFunc(func(ctx context.Context, _ mcreconcile.Request) (reconcile.Result, error) {
					log.FromContext(ctx).Info("Reconciling")
					return reconcile.Result{}, nil
				})
				c := newManaged(t, tc.make, tc.manager, tc.controller)
				src := newFakeSource("a")
				src.fail("us", atStart)
				g.Expect(c.MultiClusterWatch(src)).To(Succeed())
				start(t, c)
				g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
				g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
				synctest.Wait()
				g.Expect(tc.lines.with("Reconciling")).To(ConsistOf(And(
					HaveKeyWithValue("controller", "test"), HaveKeyWithValue("cluster", "eu"),
					HaveKeyWithValue("namespace", ""), HaveKeyWithValue("name", "a"), HaveKey("reconcileID"),
				)))
				g.Expect(tc.lines.with("Failed to start source, requests of this cluster wait")).
					To(ConsistOf(And(HaveKeyWithValue("controller", "test"), HaveKeyWithValue("cluster", "us"), HaveKeyWithValue("source", "fake source"), HaveKey("retryAfter"))))
			})
		})
	}
}
