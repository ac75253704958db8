// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.uber.org/goleak"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

func TestShutDown(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, q *queue.Queue[string])
	}{
		{"ShutDown can be called again", func(t *testing.T, q *queue.Queue[string]) {
			q.ShutDown()
			q.ShutDownWithDrain()
			q.ShutDown()
			get(q).returns(t, got{shutdown: true})
		}},
		{"ShutDown does not wait for requests that cannot be served", func(t *testing.T, q *queue.Queue[string]) {
			q.Pause("paused", "syncing")
			q.AddWithOpts(opts{}, "paused/1", "limited/1", "limited/2")
			q.AddAfter("later/1", time.Hour)
			wantNext(t, q, "limited/1")
			worker := get(q)
			worker.blocks(t)
			q.ShutDown()
			worker.returns(t, got{shutdown: true})
		}},
		{"calls after ShutDown do nothing and do not block", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2")
			wantNext(t, q, "a/1")
			q.ShutDown()
			q.Pause("a", "degraded")
			q.Resume("a", "degraded")
			q.Done("a/1")
			q.Drop("a")
			q.Add("a/1")
			wantLen(t, q, 0)
			wantKnownClusters(t, q, 0)
		}},
		{"ShutDownWithDrain waits until due requests are done", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "b/1")
			wantNext(t, q, "a/1")
			q.Add("a/1")
			drained := drain(q)
			q.Add("c/1")
			wantNext(t, q, "b/1")
			waiting := get(q)
			q.Done("b/1")
			waiting.blocks(t)
			q.Done("a/1")
			waiting.returns(t, got{item: "a/1"})
			wantOpen(t, drained)
			waiting = get(q)
			waiting.blocks(t)
			q.Done("a/1")
			<-drained
			waiting.returns(t, got{shutdown: true})
		}},
		{"ShutDownWithDrain does not wait for paused or delayed requests", func(t *testing.T, q *queue.Queue[string]) {
			q.Pause("paused", "syncing")
			q.Add("paused/1")
			q.AddAfter("later/1", time.Hour)
			<-drain(q)
			q.Resume("paused", "syncing")
			get(q).returns(t, got{shutdown: true})
		}},
		{"ShutDownWithDrain waits for a cluster at its limit", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2")
			wantNext(t, q, "a/1")
			drained := drain(q)
			wantOpen(t, drained)
			q.Done("a/1")
			wantServed(t, q, "a/2")
			<-drained
		}},
		{"ShutDownWithDrain ends when the remaining cluster is dropped", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2")
			drained := drain(q)
			wantOpen(t, drained)
			q.Drop("a")
			<-drained
		}},
		{"ShutDown ends ShutDownWithDrain", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			wantNext(t, q, "a/1")
			drained := drain(q)
			wantOpen(t, drained)
			q.ShutDown()
			<-drained
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.run(t, newQueue(t, queue.Options[string]{MaxPerCluster: 1}))
			})
		})
	}
}

// drain calls ShutDownWithDrain and closes the channel when it has returned.
func drain(q *queue.Queue[string]) <-chan struct{} {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		q.ShutDownWithDrain()
	}()
	synctest.Wait()
	return drained
}

func wantOpen(t *testing.T, drained <-chan struct{}) {
	t.Helper()
	synctest.Wait()
	select {
	case <-drained:
		t.Fatal("ShutDownWithDrain returned too early")
	default:
	}
}

func TestShutDownStopsGoroutine(t *testing.T) {
	for name, shutDown := range map[string]func(*queue.Queue[string]){
		"ShutDown":          (*queue.Queue[string]).ShutDown,
		"ShutDownWithDrain": (*queue.Queue[string]).ShutDownWithDrain,
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			q := queue.New("test", queue.Options[string]{
				ClusterOf: clusterOf,
				Log:       funcr.New(func(string, string) {}, funcr.Options{Verbosity: 5}),
			})
			for _, cluster := range []string{"a", "b", "c"} {
				q.Pause(multicluster.ClusterName(cluster), "syncing")
				q.Add(cluster + "/1")
				q.AddAfter(cluster+"/2", time.Hour)
			}
			shutDown(q)
			goleak.VerifyNone(t, before)
		})
	}
}

func TestOneGoroutinePerQueue(t *testing.T) {
	q := newQueue(t, queue.Options[string]{})
	before := goleak.IgnoreCurrent()
	for i := range 1000 {
		q.AddAfter(fmt.Sprintf("%d/1", i), time.Hour)
		q.Pause(multicluster.ClusterName(fmt.Sprint(i)), "syncing")
	}
	goleak.VerifyNone(t, before)
}

func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := make(chan string, 100)
		q := newQueue(t, queue.Options[string]{
			Log: funcr.New(func(_, line string) { lines <- line }, funcr.Options{Verbosity: 5}),
		})
		q.AddWithOpts(opts{}, "a/1", "a/2", "b/1")
		q.AddAfter("b/2", time.Hour)
		wantNext(t, q, "a/1")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		q.Pause("a", "degraded")
		q.Resume("a", "degraded")
		q.Resume("a", "degraded")
		q.Drop("a")
		synctest.Wait()
		close(lines)

		for _, want := range []string{
			`"msg"="Queue state" "clusters"=2 "waiting"=2 "delayed"=1 "processing"=1`,
			`"msg"="Paused requests of cluster" "cluster"="a" "reason"="degraded"`,
			`"msg"="Resumed requests of cluster" "cluster"="a" "reason"="degraded"`,
			`"msg"="Dropped requests of cluster" "cluster"="a" "requests"=2`,
		} {
			if line := <-lines; !strings.HasSuffix(line, want) {
				t.Errorf("got log %s, want it to end in %s", line, want)
			}
		}
		if line, more := <-lines; more {
			t.Errorf("got one more log: %s", line)
		}
	})
}
