// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

type states = []string

func TestClusterWithSeveralProfiles(t *testing.T) {
	trustAll := func(o *fleet.Options) { o.TrustDomain = func(*inventory.Profile) string { return "" } }
	for _, tc := range []struct {
		name     string
		uids     map[string]string
		down     []string
		change   func(*fleet.Options)
		profiles []*inventory.Profile
		want     states
		then     func(env *testEnv, m *members)
		after    states
		engaged  map[string]int // how often, by cluster name
		conflict bool
	}{{
		name:     "one member ID in one namespace",
		uids:     map[string]string{"x": "1", "y": "1", "z": "1"},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m"), member("fleet", "c", "z", "m")},
		want:     states{"fleet/a: Ready", "fleet/b: Duplicate of fleet/a", "fleet/c: Duplicate of fleet/a"},
		then:     func(env *testEnv, _ *members) { env.source.remove("a") },
		after:    states{"fleet/b: Ready as fleet/a", "fleet/c: Duplicate of fleet/a"},
		engaged:  map[string]int{"fleet/b": 0, "fleet/c": 0},
	}, {
		name:     "the first profile comes back",
		uids:     map[string]string{"x": "1", "y": "1"},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m")},
		then: func(env *testEnv, _ *members) {
			env.source.remove("a")
			synctest.Wait()
			env.source.put(member("fleet", "a", "x", "m"))
		},
		after:   states{"fleet/b: Ready as fleet/a", "fleet/a: Duplicate of fleet/a"},
		engaged: map[string]int{"fleet/b": 0},
	}, {
		name:     "the UID alone",
		uids:     map[string]string{"x": "1", "y": "1"},
		profiles: []*inventory.Profile{member("fleet", "a", "x", ""), member("fleet", "b", "y", "")},
		want:     states{"fleet/a: Ready", "fleet/b: Duplicate of fleet/a"},
		then:     func(env *testEnv, _ *members) { env.source.remove("a") },
		after:    states{"fleet/b: Ready as fleet/a"},
	}, {
		name:     "the member ID alone",
		uids:     map[string]string{},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m")},
		want:     states{"fleet/a: Ready", "fleet/b: Duplicate of fleet/a"},
	}, {
		name:     "the ClusterID alone",
		uids:     map[string]string{},
		profiles: []*inventory.Profile{withClusterID(member("fleet", "a", "x", ""), uuid), withClusterID(member("fleet", "b", "y", ""), uuid)},
		want:     states{"fleet/a: Ready", "fleet/b: Duplicate of fleet/a"},
	}, {
		name:     "a ClusterID that is unique only in a ClusterSet",
		uids:     map[string]string{},
		profiles: []*inventory.Profile{withClusterID(member("fleet", "a", "x", ""), "c1"), withClusterID(member("fleet", "b", "y", ""), "c1")},
		want:     states{"fleet/a: Ready", "fleet/b: Ready"},
	}, {
		name:     "one member ID, two UIDs",
		uids:     map[string]string{"x": "1", "y": "2"},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m")},
		want:     states{"fleet/a: Ready", "fleet/b: Ready"},
		conflict: true,
	}, {
		name:     "another namespace",
		uids:     map[string]string{"x": "1", "y": "1"},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("other", "a", "y", "m")},
		want:     states{"fleet/a: Ready", "other/a: Duplicate of fleet/a"},
		then:     func(env *testEnv, _ *members) { env.source.remove("a") },
		after:    states{"other/a: Ready"},
		engaged:  map[string]int{"fleet/a": 1, "other/a": 1},
	}, {
		name:     "another namespace is not used when the first fails",
		uids:     map[string]string{"x": "1", "y": "1"},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("other", "a", "y", "m")},
		then:     func(_ *testEnv, m *members) { m.set("x", true) },
		after:    states{"fleet/a: Degraded", "other/a: Duplicate of fleet/a"},
		engaged:  map[string]int{"fleet/a": 1, "other/a": 0},
	}, {
		name:     "another namespace with trust",
		uids:     map[string]string{"x": "1", "y": "1"},
		change:   trustAll,
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("other", "a", "y", "m")},
		then:     func(_ *testEnv, m *members) { m.set("x", true) },
		after:    states{"other/a: Ready as fleet/a", "other/a: Duplicate of fleet/a"},
		engaged:  map[string]int{"other/a": 0},
	}, {
		name:     "the first profile does not work at the start",
		uids:     map[string]string{"x": "1", "y": "1"},
		down:     []string{"x"},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m")},
		want:     states{"fleet/b: Ready as fleet/a", "fleet/b: Duplicate of fleet/a"},
		engaged:  map[string]int{"fleet/a": 1, "fleet/b": 0},
	}, {
		name:     "another profile does not work",
		uids:     map[string]string{"x": "1", "y": "1"},
		down:     []string{"y"},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m")},
		want:     states{"fleet/a: Ready", "fleet/b: Backoff"},
		then:     func(env *testEnv, m *members) { m.set("y", false) },
		after:    states{"fleet/a: Ready", "fleet/b: Duplicate of fleet/a"},
	}, {
		name:     "no profile works",
		uids:     map[string]string{"x": "1", "y": "1"},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m")},
		then: func(env *testEnv, m *members) {
			m.set("x", true)
			m.set("y", true)
			time.Sleep(5 * time.Minute)
			m.set("x", false)
			m.set("y", false)
		},
		engaged: map[string]int{"fleet/a": 1, "fleet/b": 0},
	}, {
		name:     "the member ID comes later",
		uids:     map[string]string{},
		profiles: []*inventory.Profile{member("fleet", "a", "x", ""), member("fleet", "b", "y", "")},
		want:     states{"fleet/a: Ready", "fleet/b: Ready"},
		then: func(env *testEnv, _ *members) {
			env.source.put(member("fleet", "b", "y", "m"), member("fleet", "a", "x", "m"))
		},
		after: states{"fleet/a: Ready", "fleet/b: Duplicate of fleet/a"},
	}, {
		name:     "the member ID is removed",
		uids:     map[string]string{},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m")},
		then:     func(env *testEnv, _ *members) { env.source.put(member("fleet", "b", "y", "")) },
		after:    states{"fleet/a: Ready", "fleet/b: Ready"},
	}, {
		name:     "a duplicate that leads to another cluster now",
		uids:     map[string]string{"x": "1", "y": "1", "z": "2"},
		profiles: []*inventory.Profile{member("fleet", "a", "x", ""), member("fleet", "b", "y", "")},
		then:     func(env *testEnv, _ *members) { env.source.put(member("fleet", "b", "z", "")) },
		after:    states{"fleet/a: Ready", "fleet/b: Ready"},
	}, {
		name:     "duplicates are kept",
		uids:     map[string]string{"x": "1", "y": "1"},
		change:   func(o *fleet.Options) { o.KeepDuplicates = true },
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m")},
		want:     states{"fleet/a: Ready", "fleet/b: Ready"},
	}, {
		name: "names by member ID",
		uids: map[string]string{"x": "1", "y": "1"},
		change: func(o *fleet.Options) {
			trustAll(o)
			o.ClusterName = func(p *inventory.Profile) multicluster.ClusterName {
				return multicluster.ClusterName(inventory.MemberID(p))
			}
		},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("other", "b", "y", "m")},
		want:     states{"fleet/a: Ready as m", "other/b: Duplicate of m as m"},
		then:     func(env *testEnv, _ *members) { env.source.remove("a") },
		after:    states{"other/b: Ready as m"},
	}, {
		name: "names by member ID, two UIDs",
		uids: map[string]string{"x": "1", "y": "2"},
		change: func(o *fleet.Options) {
			o.ClusterName = func(p *inventory.Profile) multicluster.ClusterName {
				return multicluster.ClusterName(inventory.MemberID(p))
			}
		},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m")},
		want:     states{"fleet/a: Ready as m", "fleet/b: Backoff as m"},
		conflict: true,
		then:     func(env *testEnv, _ *members) { env.source.remove("a") },
		after:    states{"fleet/b: Ready as m"},
		engaged:  map[string]int{"m": 2},
	}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				m := newMembers(tc.uids)
				for _, server := range tc.down {
					m.set(server, true)
				}
				env := start(t, nil, withConnector(m), func(o *fleet.Options) {
					if tc.change != nil {
						tc.change(o)
					}
				})
				for _, p := range tc.profiles {
					env.source.put(p)
					time.Sleep(time.Second)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if tc.want != nil {
					g.Expect(env.states()).To(ConsistOf(tc.want))
				}
				for _, status := range env.Status() {
					g.Expect(status.Conflict != "").To(Equal(tc.conflict), status.Conflict)
				}
				if tc.then != nil {
					tc.then(env, m)
					time.Sleep(2 * time.Minute)
					synctest.Wait()
				}
				if tc.after != nil {
					g.Expect(env.states()).To(ConsistOf(tc.after))
				}
				for name, times := range tc.engaged {
					g.Expect(env.aware.of(multicluster.ClusterName(name))).To(HaveLen(times), name)
				}
				env.stop()
			})
		})
	}
}

// The first profile has the cluster, also if the second is faster at the start: the
// result of a restart is the same, and later profiles cannot take a cluster. The two
// are never engaged at once.
func TestFirstProfileHasTheCluster(t *testing.T) {
	for _, tc := range []struct {
		name, other string // the namespace of the second profile
		delay       time.Duration
		first       bool
	}{
		{"the same namespace, at the start", "fleet", 2 * time.Second, true},
		{"the same namespace, later", "fleet", time.Hour, false},
		{"another namespace, at the start", "other", 2 * time.Second, true},
		{"another namespace, later", "other", time.Hour, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				m := newMembers(map[string]string{"x": "1", "y": "1"})
				m.set("x", true)
				env := start(t, nil, withConnector(m))
				env.source.put(member("fleet", "a", "x", ""), member(tc.other, "b", "y", ""))
				time.Sleep(tc.delay)
				name := multicluster.ClusterName(tc.other + "/b")
				g.Expect(env.state(name)()).To(Equal(fleet.Ready))
				m.set("x", false)
				time.Sleep(time.Minute)
				synctest.Wait()
				if !tc.first {
					g.Expect(env.states()).To(ConsistOf("fleet/a: Duplicate of "+name.String(), name.String()+": Ready"))
					g.Expect(env.aware.of("fleet/a")).To(BeEmpty())
					env.stop()
					return
				}
				g.Expect(env.states()).To(ConsistOf("fleet/a: Ready", name.String()+": Duplicate of fleet/a"))
				g.Expect(env.aware.of(name)).To(HaveLen(1))
				g.Expect(env.aware.of("fleet/a")).To(HaveLen(1))
				g.Expect(env.aware.of(name)[0].ctx.Err()).To(HaveOccurred())
				g.Expect(m.twice).To(BeFalse())
				env.stop()
			})
		})
	}
}

const uuid = "0b8f5ad6-3c2c-4d0a-9f0e-2f4f7a3b1c11"
