// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// controller-runtime watches metadata through apimachinery's watch.Filter,
	// which may wait forever to hand on the last event of a watch that is stopped.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"))
}

// connect runs a cluster on a server until the test ends.
func connect(t *testing.T, server *mctest.Cluster, opts ...cluster.Option) cluster.Cluster {
	t.Helper()
	cl, err := cluster.New(server.Config(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	mctest.StartManager(t, cl)
	if !cl.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the cluster did not start")
	}
	return cl
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// create stores objects with a server.
func create(t *testing.T, server *mctest.Cluster, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := server.Create(configMap(name)); err != nil {
			t.Fatal(err)
		}
	}
}

// queue records adds.
type queue[request comparable] struct {
	priorityqueue.PriorityQueue[request]
	mu       sync.Mutex
	requests []request
	low      int
}

func (q *queue[request]) Add(item request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

func (q *queue[request]) AddWithOpts(opts priorityqueue.AddOpts, items ...request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = append(q.requests, items...)
	if opts.Priority != nil && *opts.Priority == handler.LowPriority {
		q.low += len(items)
	}
}

// added returns the added requests.
func (q *queue[request]) added() []request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]request(nil), q.requests...)
}

// initial returns the number of requests that were added with low priority.
func (q *queue[request]) initial() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.low
}

func request(name multicluster.ClusterName, object string) mcreconcile.Request {
	return mcreconcile.Request{
		ClusterName: name,
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: object}},
	}
}
