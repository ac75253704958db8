// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestAPlaceThatIsConfirmedDoesNotExpire(t *testing.T) {
	g := NewWithT(t)
	gate := newGate(1)
	p, err := gate.enter(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.confirm(t.Context())).To(Succeed())
	p.expire() // its timer ran out in that moment
	g.Expect(gate.places).To(HaveLen(1))
	p.leave()
	p.leave()
	g.Expect(gate.places).To(BeEmpty())
}

func TestAPlaceThatExpiredIsTakenAgain(t *testing.T) {
	g := NewWithT(t)
	gate := newGate(1)
	p, err := gate.enter(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	p.expire()
	g.Expect(gate.places).To(BeEmpty())
	g.Expect(p.confirm(t.Context())).To(Succeed())
	g.Expect(gate.places).To(HaveLen(1))
	p.leave()
	g.Expect(gate.places).To(BeEmpty())
}
