// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/clients"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

const idleTimeout = 50 * time.Millisecond

func soonIdle(o *clients.Options) { o.IdleTimeout = idleTimeout }

// connectedClusters returns the value of the metric.
func connectedClusters(t *testing.T) float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "rollcall_clients_connected" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("no metric")
	return 0
}

func TestIdleClusterIsDisconnected(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	e := newEnv(t, soonIdle, c)
	goroutines := runtime.NumGoroutine()
	held := e.client(c)
	g.Expect(read(t.Context(), held)).To(Succeed())
	g.Eventually(c.Connections).Should(BeZero())
	g.Eventually(runtime.NumGoroutine).Should(BeNumerically("<=", goroutines))
	g.Eventually(func() float64 { return connectedClusters(t) }).Should(BeZero())

	resolved := e.count(c.Name())
	g.Expect(read(t.Context(), held)).To(Succeed(), "a client that was kept connects again")
	g.Expect(e.count(c.Name())).To(Equal(resolved + 1))
	g.Expect(read(t.Context(), e.client(c))).To(Succeed())
	g.Eventually(c.Connections).Should(BeZero())
}

func TestMovedWhileIdle(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	e := newEnv(t, soonIdle, c)
	held := e.client(c)
	for range 3 {
		g.Eventually(c.Connections).Should(BeZero())
		c.Move()
		server := c.Config().Host
		e.set(server, c.Config())
		e.put(profile(c.Name(), server))
		g.Expect(read(t.Context(), held)).To(Succeed())
	}
}

func TestUseKeepsConnected(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	watched, slow := f.Cluster(0), f.Cluster(1)
	e := newEnv(t, soonIdle, watched, slow)
	watching, err := e.client(watched).Watch(t.Context(), &corev1.ConfigMapList{})
	g.Expect(err).NotTo(HaveOccurred())
	held := e.client(slow)
	lift := slow.Fault(mctest.Hang)
	answered := make(chan error)
	go func() { answered <- read(t.Context(), held) }()
	g.Eventually(func() int { return slow.Requests("get", "namespaces") }).Should(Equal(1))
	g.Eventually(slow.Connections).Should(Equal(1)) // a second one was opened at the same time

	g.Consistently(func() []int {
		return []int{watched.OpenWatches("configmaps"), slow.Connections(), e.count(slow.Name())}
	}).
		WithTimeout(6 * idleTimeout).Should(Equal([]int{1, 1, 1}))
	g.Expect(watched.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})).To(Succeed())
	g.Eventually(watching.ResultChan()).Should(Receive())
	lift()
	g.Expect(<-answered).To(Succeed())
	watching.Stop()
	for _, c := range f.Clusters() {
		g.Eventually(c.Connections).Should(BeZero(), "idle from then on")
	}
}

func TestNegativeIdleTimeout(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	e := newEnv(t, func(o *clients.Options) { o.IdleTimeout = -1 }, c)
	g.Expect(read(t.Context(), e.client(c))).To(Succeed())
	g.Eventually(c.Connections).Should(Equal(1)) // a second one was opened at the same time
	g.Consistently(c.Connections).WithTimeout(6 * idleTimeout).Should(Equal(1))
}

// TestConcurrency lets profiles come, go and change while callers use them, idle
// clusters are dropped at once, and credentials change.
func TestConcurrency(t *testing.T) {
	g := NewWithT(t)
	const members, callers, rounds = 3, 4, 60
	f := mctest.NewFleet(t, members)
	e := newEnv(t, func(o *clients.Options) { o.IdleTimeout = time.Millisecond }, f.Clusters()...)
	for _, c := range f.Clusters() {
		for i := range 3 {
			token := fmt.Sprintf("token-%d", i)
			c.AddToken(token, "user")
			e.set(c.Name()+token, c.ConfigFor(token))
		}
	}
	var users sync.WaitGroup
	for range callers {
		users.Go(func() {
			for range rounds {
				c := f.Cluster(rand.IntN(members))
				member, err := e.Client(t.Context(), ref(c.Name()))
				if err != nil {
					continue // the profile may be away
				}
				for range rand.IntN(3) {
					_ = read(t.Context(), member)
				}
			}
		})
	}
	for range rounds {
		c := f.Cluster(rand.IntN(members))
		switch rand.IntN(3) {
		case 0:
			e.remove(c.Name())
		case 1:
			e.put(profile(c.Name(), c.Name()+fmt.Sprintf("token-%d", rand.IntN(3))))
		default:
			e.notify()
		}
		runtime.Gosched()
	}
	users.Wait()
	for _, c := range f.Clusters() {
		e.put(profile(c.Name(), c.Name()))
		g.Eventually(func() error {
			member, err := e.Client(t.Context(), ref(c.Name()))
			if err == nil {
				err = read(t.Context(), member)
			}
			return err
		}).Should(Succeed())
	}
	for _, c := range f.Clusters() {
		g.Eventually(c.Connections).Should(BeZero())
	}
	g.Eventually(func() float64 { return connectedClusters(t) }).Should(BeZero())
}
