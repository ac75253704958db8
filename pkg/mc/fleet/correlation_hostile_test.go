// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"cmp"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func nameByMemberID(o *fleet.Options) {
	o.ClusterName = func(p *inventory.Profile) multicluster.ClusterName {
		return multicluster.ClusterName(cmp.Or(inventory.MemberID(p), inventory.ClusterName(p)))
	}
}

// Evidence that changes makes no cluster leave that was engaged before, and none wait
// for a profile that does not engage it.
func TestEvidenceThatChanges(t *testing.T) {
	for _, tc := range []struct {
		name     string
		uids     map[string]string
		down     []string
		change   func(*fleet.Options)
		profiles []*inventory.Profile
		then     func(env *testEnv, m *members)
		want     states
		engaged  map[string]int
	}{{
		name:     "the cluster of a profile whose name is taken",
		uids:     map[string]string{"x": "1", "y": "2", "z": "2"},
		change:   nameByMemberID,
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m"), member("other", "c", "z", "")},
		want:     states{"fleet/a: Ready as m", "fleet/b: Duplicate of other/c as m", "other/c: Ready"},
	}, {
		name:   "the cluster of a profile whose name is taken, engaged before",
		uids:   map[string]string{"x": "1", "y": "2", "z": "2"},
		down:   []string{"y"},
		change: nameByMemberID,
		profiles: []*inventory.Profile{
			member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m"), member("other", "c", "z", ""),
		},
		then:    func(_ *testEnv, m *members) { m.set("y", false) },
		want:    states{"fleet/a: Ready as m", "fleet/b: Duplicate of other/c as m", "other/c: Ready"},
		engaged: map[string]int{"other/c": 1},
	}, {
		name: "profiles in a chain",
		uids: map[string]string{"x": "1", "y": "1", "z": "1"},
		down: []string{"x", "y"},
		profiles: []*inventory.Profile{
			member("fleet", "a", "x", "m"), withClusterID(member("fleet", "b", "y", "m"), uuid), withClusterID(member("fleet", "c", "z", ""), uuid),
		},
		want: states{"fleet/a: Backoff", "fleet/b: Duplicate of fleet/a", "fleet/c: Ready"},
	}, {
		name:     "an older profile of another author leads to the cluster now",
		uids:     map[string]string{"x": "1", "e": "9", "f": "1"},
		profiles: []*inventory.Profile{member("other", "e", "e", ""), member("fleet", "a", "x", "")},
		then:     func(env *testEnv, _ *members) { env.source.put(member("other", "e", "f", "")) },
		want:     states{"fleet/a: Ready", "other/e: Duplicate of fleet/a"},
		engaged:  map[string]int{"fleet/a": 1},
	}, {
		name:     "a server of another author says another UID now",
		uids:     map[string]string{"x": "1", "e": "9"},
		profiles: []*inventory.Profile{member("other", "e", "e", ""), member("fleet", "a", "x", "")},
		then:     func(_ *testEnv, m *members) { m.setUID("e", "1") },
		want:     states{"fleet/a: Ready", "other/e: Duplicate of fleet/a"},
		engaged:  map[string]int{"fleet/a": 1},
	}, {
		name:     "an older profile of another author has the member ID now",
		uids:     map[string]string{"x": "1", "e": ""},
		profiles: []*inventory.Profile{member("other", "e", "e", ""), member("fleet", "a", "x", "m")},
		then:     func(env *testEnv, _ *members) { env.source.put(member("other", "e", "e", "m")) },
		want:     states{"fleet/a: Ready", "other/e: Duplicate of fleet/a"},
		engaged:  map[string]int{"fleet/a": 1},
	}, {
		name:     "the UID can be read later, with a duplicate of another author",
		uids:     map[string]string{"x": "", "e": ""},
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("other", "e", "e", "m")},
		then: func(_ *testEnv, m *members) {
			m.setUID("e", "1")
			m.setUID("x", "1")
		},
		want:    states{"fleet/a: Ready", "other/e: Duplicate of fleet/a"},
		engaged: map[string]int{"fleet/a": 1, "other/e": 0},
	}, {
		name:     "the other server was rebuilt when the first is gone",
		uids:     map[string]string{"x": "1", "y": "1"},
		change:   func(o *fleet.Options) { o.Connection.Probe.DropAfter = time.Minute },
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m")},
		then: func(_ *testEnv, m *members) {
			m.setUID("y", "2")
			m.set("x", true)
			time.Sleep(5 * time.Minute)
		},
		want:    states{"fleet/a: Backoff", "fleet/b: Ready"},
		engaged: map[string]int{"fleet/a": 1, "fleet/b": 1},
	}, {
		name:     "a profile is added while the first waits for its next attempt",
		uids:     map[string]string{"x": "1", "y": "1"},
		down:     []string{"x"},
		change:   func(o *fleet.Options) { o.Connection.MaxBackoff = time.Hour },
		profiles: []*inventory.Profile{member("fleet", "a", "x", "m")},
		then: func(env *testEnv, _ *members) {
			time.Sleep(5 * time.Hour)
			env.source.put(member("fleet", "b", "y", "m"))
		},
		want:    states{"fleet/b: Ready as fleet/a", "fleet/b: Duplicate of fleet/a"},
		engaged: map[string]int{"fleet/b": 0},
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
					time.Sleep(time.Minute)
				}
				if tc.then != nil {
					tc.then(env, m)
					time.Sleep(time.Minute)
				}
				synctest.Wait()
				g.Expect(env.states()).To(ConsistOf(tc.want))
				for name, times := range tc.engaged {
					g.Expect(env.aware.of(multicluster.ClusterName(name))).To(HaveLen(times), name)
				}
				env.stop()
			})
		})
	}
}

// A profile is a duplicate only if its own access leads to the cluster.
func TestDuplicateHasOwnAccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		m := newMembers(map[string]string{"x": "1", "y": "2", "z": "1"})
		m.set("y", true)
		m.delay("z", 3*time.Second)
		env := start(t, nil, withConnector(m))
		env.source.put(member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m"), member("fleet", "c", "z", "m"))
		time.Sleep(time.Minute)
		synctest.Wait()
		g.Expect(env.states()).To(ConsistOf("fleet/a: Ready", "fleet/b: Backoff", "fleet/c: Duplicate of fleet/a"))
		m.set("y", false)
		time.Sleep(time.Minute)
		synctest.Wait()
		g.Expect(env.states()).To(ConsistOf("fleet/a: Ready", "fleet/b: Ready", "fleet/c: Duplicate of fleet/a"))
		env.stop()
	})
}

// A duplicate whose access changes all the time is not connected each time.
func TestDuplicatesAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		m := newMembers(map[string]string{"x": "1", "y": "1", "z": "1"})
		env := start(t, nil, withConnector(m), func(o *fleet.Options) {
			o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Second, time.Minute
		})
		env.source.put(member("fleet", "a", "x", ""))
		time.Sleep(time.Second)
		for range 500 {
			for _, server := range []string{"y", "z"} {
				env.source.put(member("fleet", "b", server, ""))
				time.Sleep(time.Second / 10)
			}
		}
		g.Expect(m.connects("y") + m.connects("z")).To(BeNumerically("<", 50))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		g.Expect(env.states()).To(ConsistOf("fleet/a: Ready", "fleet/b: Duplicate of fleet/a"))
		env.stop()
	})
}

// Changes of a profile are noticed while it is a duplicate.
func TestDuplicateSeesChanges(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			env := start(t, nil, withConnector(newMembers(map[string]string{})))
			env.source.put(member("fleet", "a", "x", "m"), member("fleet", "b", "y", "m"))
			time.Sleep(time.Second)
			env.source.put(member("fleet", "b", "y", ""))
			time.Sleep(time.Second)
			synctest.Wait()
			g.Expect(env.states()).To(ConsistOf("fleet/a: Ready", "fleet/b: Ready"))
			env.stop()
		})
	}
}

// A worker that has just been started can be stopped or handed over.
func TestQuickHandOver(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			env := start(t, nil, withConnector(newMembers(map[string]string{"x": "1", "y": "1"})))
			env.source.events <- func(sink inventory.Sink) {
				sink.Put(member("fleet", "a", "x", "m"))
				sink.Put(member("fleet", "b", "y", "m"))
				sink.Remove(inventory.Key{Namespace: "fleet", Name: "a"})
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			g.Expect(env.states()).To(ConsistOf("fleet/b: Ready as fleet/a"))
			env.stop()
		})
	}
}
