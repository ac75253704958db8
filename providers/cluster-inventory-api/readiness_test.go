// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// eventSink records what it receives.
type eventSink struct {
	mu     sync.Mutex
	events []string
}

func (s *eventSink) record(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
}

func (s *eventSink) Put(p *inventory.Profile) { s.record("put " + p.Name) }
func (s *eventSink) Remove(key inventory.Key) { s.record("remove " + key.Name) }
func (s *eventSink) Synced()                  { s.record("synced") }

func (s *eventSink) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	s.events = nil
	return events
}

// profileWith returns the profile eu with a ControlPlaneHealthy condition, or
// without one.
func profileWith(healthy metav1.ConditionStatus) *inventory.Profile {
	p := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "eu"}}
	if healthy != "" {
		p.Status.Conditions = []metav1.Condition{{Type: inventory.ConditionControlPlaneHealthy, Status: healthy}}
	}
	return p
}

func TestDefaultIsReady(t *testing.T) {
	g := NewWithT(t)
	sink, r := &eventSink{}, newReadiness(&Options{})
	run := func(events func(inventory.Sink)) []string {
		t.Helper()
		err := r.run(t.Context(), inventory.SourceFunc(func(_ context.Context, s inventory.Sink) error {
			events(s)
			return nil
		}), sink)
		g.Expect(err).NotTo(HaveOccurred())
		return sink.take()
	}
	g.Expect(run(func(s inventory.Sink) {
		for _, status := range []metav1.ConditionStatus{"", metav1.ConditionUnknown, metav1.ConditionFalse} {
			s.Put(profileWith(status))
		}
		s.Synced()
	})).To(Equal([]string{"remove eu", "remove eu", "remove eu", "synced"}), "not connected before it is healthy")
	g.Expect(run(func(s inventory.Sink) { s.Put(profileWith(metav1.ConditionTrue)) })).To(Equal([]string{"put eu"}))
	g.Expect(run(func(s inventory.Sink) {
		s.Put(profileWith(metav1.ConditionFalse))
		s.Put(profileWith(""))
	})).To(Equal([]string{"put eu", "put eu"}), "it stays, also in the next run of the source")
	g.Expect(run(func(s inventory.Sink) {
		s.Remove(inventory.KeyOf(profileWith("")))
		s.Put(profileWith(metav1.ConditionFalse))
	})).To(Equal([]string{"remove eu", "remove eu"}), "a new profile must be healthy first")
}

func TestHealthOfSelectionDecides(t *testing.T) {
	g := NewWithT(t)
	r := newReadiness(&Options{Selection: inventory.Selection{Health: []inventory.HealthStatus{inventory.HealthUnknown}}})
	g.Expect(r.isReady(t.Context(), profileWith(""))).To(BeTrue())
	g.Expect(r.once).To(BeFalse())
}

func TestCustomIsReadyIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var elsewhere atomic.Bool
		var asked atomic.Int32
		sink, r := &eventSink{}, newReadiness(&Options{IsReady: func(context.Context, *inventory.Profile) bool {
			asked.Add(1)
			return elsewhere.Load()
		}})
		puts := make(chan *inventory.Profile)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- r.run(ctx, inventory.SourceFunc(func(ctx context.Context, s inventory.Sink) error {
				for {
					select {
					case p := <-puts:
						s.Put(p)
					case <-ctx.Done():
						return nil
					}
				}
			}), sink)
		}()
		puts <- profileWith("")
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		g.Expect(asked.Load()).To(BeEquivalentTo(7), "at once, and every 10 s")
		g.Expect(sink.take()).To(Equal([]string{"remove eu"}))

		elsewhere.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		g.Expect(sink.take()).To(Equal([]string{"put eu"}))
		time.Sleep(time.Minute)
		synctest.Wait()
		g.Expect(asked.Load()).To(BeEquivalentTo(8), "not again while it is ready")

		elsewhere.Store(false)
		puts <- profileWith("")
		synctest.Wait()
		g.Expect(sink.take()).To(Equal([]string{"remove eu"}), "a custom one also disconnects")
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
}
