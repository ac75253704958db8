// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/clients"
)

// observed is an event, and what Client returned at that time.
type observed struct {
	Name string
	Err  error
}

func TestEvents(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t, nil)
	e.put(profile("known", "nowhere"))
	events := make(chan observed)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	source := e.Events(handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		_, err := e.Config(ctx, client.ObjectKeyFromObject(o))
		events <- observed{o.GetName(), err}
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}))
	g.Expect(source.Start(ctx, queue)).To(Succeed())

	e.put(profile("a", "nowhere"))
	g.Eventually(events).Should(Receive(And(HaveField("Name", "a"), HaveField("Err", MatchError(ContainSubstring("no credentials"))))))
	g.Eventually(queue.Len).Should(Equal(1))

	heartbeat := profile("a", "nowhere")
	heartbeat.Labels = map[string]string{"beat": "1"}
	e.put(heartbeat)
	e.put(profile("b", "nowhere"))
	g.Eventually(events).Should(Receive(HaveField("Name", "b")), "a heartbeat is no event")

	e.put(profile("b", "elsewhere"))
	g.Eventually(events).Should(Receive(HaveField("Name", "b")), "its access has changed")
	e.remove("b")
	g.Eventually(events).Should(Receive(And(HaveField("Name", "b"), HaveField("Err", MatchError(clients.ErrProfileNotFound)))))
	e.remove("b")
	e.put(profile("b", "elsewhere"))
	g.Eventually(events).Should(Receive(HaveField("Err", Not(MatchError(clients.ErrProfileNotFound)))))

	cancel()
	e.put(profile("c", "nowhere")) // blocks nothing
	e.stop()
	g.Expect(source.Start(t.Context(), queue)).To(Succeed(), "after the end")
}
