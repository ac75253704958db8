// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// Profiles without a UID, as those of sources that are no hub, with equal access.
func TestEqualAccessTakesOver(t *testing.T) {
	for _, uids := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			m := newMembers(map[string]string{"x": "1", "y": "1"})
			m.set("y", true)
			env := start(t, nil, withConnector(m))
			a, b, changed := member("fleet", "a", "x", "m"), member("fleet", "b", "x", "m"), member("fleet", "b", "y", "m")
			if !uids {
				a.UID, b.UID, changed.UID = "", "", ""
			}
			env.source.put(a, b)
			time.Sleep(time.Minute)
			env.source.remove("a")
			time.Sleep(time.Minute)
			env.source.put(changed)
			time.Sleep(time.Minute)
			synctest.Wait()
			g.Expect(env.states()).To(ConsistOf("fleet/b: Ready as fleet/a"), "uids %v: the new access fails, the connection is kept", uids)
			g.Expect(env.aware.of("fleet/a")).To(HaveLen(1))
			g.Expect(env.Status()[0].Reason).To(Equal(fleet.AccessUpdateFailed))
			env.stop()
		})
	}
}

// Profiles with one cluster name, as with NameByMemberID.
func TestSameNameTakesOver(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.AddToken("a", "a", "system:masters")
	c.AddToken("b", "b", "system:masters")
	env := start(t, nil, func(o *fleet.Options) { o.ClusterName = fleet.NameByMemberID })
	env.credentials.set("https://a.example", c.ConfigFor("a"))
	env.credentials.set("https://b.example", c.ConfigFor("b"))
	env.source.put(member("fleet", "a", "https://a.example", "m"), member("fleet", "b", "https://b.example", "m"))
	g.Eventually(env.states).Should(ConsistOf("fleet/a: Ready as m", "fleet/b: Duplicate of m as m"))
	cl := env.aware.of("m")[0].cluster
	env.source.remove("a")
	g.Eventually(func() string { return cl.GetConfig().BearerToken }).Should(Equal("b"))
	g.Expect(env.aware.of("m")).To(HaveLen(1))
}
