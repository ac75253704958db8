// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
)

func TestAPlaceThatIsConfirmedDoesNotExpire(t *testing.T) {
	g := NewWithT(t)
	gate := newGate(1, clock.RealClock{})
	p, err := gate.enter(t.Context(), untried)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.confirm(t.Context())).To(Succeed())
	p.expire() // its timer ran out in that moment
	g.Expect(gate.taken).To(Equal(1))
	p.leave()
	p.leave()
	g.Expect(gate.taken).To(BeZero())
}

func TestAPlaceThatExpiredIsTakenAgain(t *testing.T) {
	g := NewWithT(t)
	gate := newGate(1, clock.RealClock{})
	p, err := gate.enter(t.Context(), untried)
	g.Expect(err).NotTo(HaveOccurred())
	p.expire()
	g.Expect(gate.taken).To(BeZero())
	g.Expect(p.confirm(t.Context())).To(Succeed())
	g.Expect(gate.taken).To(Equal(1))
	p.leave()
	g.Expect(gate.taken).To(BeZero())
}

func TestThoseWhoseClustersAnswerGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		gate := newGate(1, clock.RealClock{})
		first, err := gate.enter(t.Context(), untried)
		g.Expect(err).NotTo(HaveOccurred())
		lost, order := &place{gate: gate}, make(chan urgency, urgencies)
		for _, u := range []urgency{failed, untried, answered, engaged} {
			go func() {
				p := lost
				if u == answered {
					_ = p.confirm(t.Context())
				} else {
					p, _ = gate.enter(t.Context(), u)
				}
				order <- u
				p.leave()
			}()
			synctest.Wait()
		}
		first.leave()
		g.Expect([]urgency{<-order, <-order, <-order, <-order}).To(Equal([]urgency{engaged, answered, untried, failed}))
	})
}

func TestAPlaceIsLostToThoseThatAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		gate := newGate(2, clock.RealClock{})
		silent, err := gate.enter(t.Context(), untried)
		g.Expect(err).NotTo(HaveOccurred())
		for range overtakenBy * 2 {
			p, err := gate.enter(t.Context(), untried)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.confirm(t.Context())).To(Succeed())
			p.leave()
		}
		g.Expect(silent.held).To(BeTrue())
		p, err := gate.enter(t.Context(), untried)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.confirm(t.Context())).To(Succeed())
		g.Expect(silent.held).To(BeFalse())
		p.leave()

		g.Expect(silent.confirm(t.Context())).To(Succeed(), "it is asked in again")
		g.Expect(gate.taken).To(Equal(1))
		silent.leave()
		g.Expect(gate.taken).To(BeZero())
		g.Expect(gate.asking).To(BeEmpty())
	})
}

func TestWhoGivesUpWaitingLeavesNoPlaceBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		gate := newGate(1, clock.RealClock{})
		for range 100 {
			p, err := gate.enter(t.Context(), untried)
			g.Expect(err).NotTo(HaveOccurred())
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if p, err := gate.enter(ctx, untried); err == nil {
					p.leave()
				}
			}()
			synctest.Wait()
			go cancel()
			p.leave()
			synctest.Wait()
			g.Expect(gate.taken).To(BeZero())
			g.Expect(gate.waiting[untried]).To(BeEmpty())
		}
	})
}
