// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// eventLog is a sink that records the calls.
type eventLog struct {
	calls []string
}

func (l *eventLog) Put(p *Profile) { l.calls = append(l.calls, "put "+p.Name) }
func (l *eventLog) Remove(key Key) { l.calls = append(l.calls, "remove "+key.Name) }
func (l *eventLog) Synced()        { l.calls = append(l.calls, "synced") }

func named(name string) *Profile {
	return &Profile{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestRestartKeepsProfilesUntilRelisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var runs []time.Time
		src := SourceFunc(func(ctx context.Context, sink Sink) error {
			runs = append(runs, time.Now())
			switch len(runs) {
			case 1:
				sink.Put(named("kept"))
				sink.Put(named("deleted"))
				sink.Put(named("removed"))
				sink.Remove(Key{Name: "removed"})
				sink.Synced()
				return errors.New("outage")
			case 2:
				sink.Put(named("kept"))
				return errors.New("outage before the listing was complete")
			case 3:
				return nil // violates the contract
			default:
				sink.Put(named("kept"))
				sink.Put(named("added"))
				sink.Synced()
				<-ctx.Done()
				return ctx.Err()
			}
		})

		ctx, cancel := context.WithCancel(t.Context())
		sink := &eventLog{}
		done := make(chan error)
		go func() { done <- Restart(src).Run(ctx, sink) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(sink.calls).To(Equal([]string{
			"put kept", "put deleted", "put removed", "remove removed", "synced",
			"put kept",
			"put kept", "put added", "remove deleted",
		}))
		cancel()
		g.Expect(<-done).To(Succeed())

		g.Expect(runs).To(HaveLen(4))
		waits := []time.Duration{runs[1].Sub(runs[0]), runs[2].Sub(runs[1]), runs[3].Sub(runs[2])}
		g.Expect(waits[0]).To(BeNumerically("~", time.Second, 250*time.Millisecond))
		g.Expect(waits[1]).To(BeNumerically("~", 2*time.Second, 500*time.Millisecond), "no sync, longer wait")
		g.Expect(waits[2]).To(BeNumerically("~", 4*time.Second, time.Second))
	})
}

func TestRestartBackoffLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var runs []time.Time
		src := SourceFunc(func(context.Context, Sink) error {
			runs = append(runs, time.Now())
			return errors.New("always")
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		g.Expect(Restart(src).Run(ctx, &eventLog{})).To(Succeed())
		g.Expect(len(runs)).To(BeNumerically(">", 45))
		for i := 8; i < len(runs); i++ {
			g.Expect(runs[i].Sub(runs[i-1])).To(BeNumerically("~", 66*time.Second, 6*time.Second))
		}
	})
}

func TestRestartStopsDuringBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- Restart(SourceFunc(func(context.Context, Sink) error { return errors.New("always") })).Run(ctx, &eventLog{})
		}()
		synctest.Wait()
		cancel()
		g.Expect(<-done).To(Succeed())
	})
}
