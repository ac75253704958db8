// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

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
		name:   "profiles in a chain",
		change: func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour },
		uids:   map[string]string{"x": "1", "y": "1", "z": "1"},
		down:   []string{"x", "y"},
		profiles: []*inventory.Profile{
			member("fleet", "a", "x", "m"), withClusterID(member("fleet", "b", "y", "m"), uuid), withClusterID(member("fleet", "c", "z", ""), uuid),
		},
		engaged: map[string]int{"fleet/c": 1},
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
				if tc.want != nil {
					g.Expect(env.states()).To(ConsistOf(tc.want))
				}
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

// mode is what may happen in a run of TestClustersAreEngagedOnce.
type mode struct {
	trust, byMemberID bool
	unreadable        bool // UIDs cannot be read for a while: a cluster may be engaged twice then
	lies              bool // member IDs may be those of other clusters
}

// Whatever happens to profiles and servers, no cluster is engaged twice at once, and
// each cluster that can be reached in the end is engaged.
func TestClustersAreEngagedOnce(t *testing.T) {
	first, n := seedOf("ROLLCALL_SEED", 0), seedOf("ROLLCALL_SEEDS", 50)
	for seed := first; seed < first+n; seed++ {
		synctest.Test(t, func(t *testing.T) { hostileMoves(t, uint64(seed)) })
		if t.Failed() {
			return
		}
	}
}

// seedOf returns the value of an environment variable.
func seedOf(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

func hostileMoves(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	mode := mode{trust: seed&1 != 0, byMemberID: seed&2 != 0, unreadable: seed&12 == 4, lies: seed&12 == 8}
	m := newMembers(map[string]string{"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b"})
	servers := []string{"a1", "a2", "a3", "b1", "b2"}
	env := start(t, nil, withConnector(m), func(o *fleet.Options) {
		if mode.trust {
			o.TrustDomain = func(*inventory.Profile) string { return "" }
		}
		if mode.byMemberID {
			nameByMemberID(o)
		}
		o.IsReady = func(p *inventory.Profile) bool { return p.Annotations["off"] == "" }
		o.Connection.Probe.DropAfter = time.Minute
	})
	var trace []string
	log := func(text string, args ...any) { trace = append(trace, fmt.Sprintf(text, args...)) }
	fail := func(text string) {
		for _, line := range trace {
			t.Log(line)
		}
		for _, s := range env.Status() {
			t.Logf("%s (%s) uid=%q of=%q: %v", s.Name, s.Profile, s.UID, s.DuplicateOf, s)
		}
		t.Fatalf("seed %d %+v: %s", seed, mode, text)
	}
	check := func() {
		if mode.unreadable {
			return
		}
		m.mu.Lock()
		twice := m.twice
		m.mu.Unlock()
		if twice {
			fail("a cluster runs twice at once")
		}
	}
	exists := map[string]string{}
	incarnation := 0
	for range 60 {
		name := string('p' + rune(random.IntN(4)))
		server := servers[random.IntN(len(servers))]
		namespace := []string{"fleet", "other"}[random.IntN(2)]
		key := namespace + "/" + name
		switch random.IntN(8) {
		case 0, 1, 2:
			id := []string{"", "m" + server[:1]}[random.IntN(2)]
			if mode.lies {
				id = []string{"", "ma", "mb"}[random.IntN(3)]
			}
			p := member(namespace, name, server, id)
			if random.IntN(4) == 0 {
				p = withClusterID(p, uuid[:len(uuid)-1]+server[:1])
			}
			if exists[key] == "" {
				incarnation++
			}
			p.UID += types.UID(strconv.Itoa(incarnation / 3))
			log("put %s at %s as %q", key, server, id)
			exists[key] = server
			if random.IntN(6) == 0 {
				log("... not ready")
				p.Annotations = map[string]string{"off": "x"}
				delete(exists, key)
			}
			env.source.put(p)
		case 3:
			log("remove %s", key)
			env.source.events <- func(sink inventory.Sink) { sink.Remove(inventory.Key{Namespace: namespace, Name: name}) }
			delete(exists, key)
		case 4:
			down := random.IntN(2) == 0
			log("%s down %v", server, down)
			m.set(server, down)
		case 5:
			delay := []time.Duration{0, time.Second, time.Hour}[random.IntN(3)]
			log("%s delay %v", server, delay)
			m.delay(server, delay)
		case 6:
			log("recheck %s", key)
			env.Recheck(inventory.Key{Namespace: namespace, Name: name})
		case 7:
			if mode.unreadable {
				uid := []string{"", server[:1]}[random.IntN(2)]
				log("%s uid %q", server, uid)
				m.setUID(server, uid)
			}
		}
		if random.IntN(3) > 0 {
			time.Sleep(time.Duration(random.IntN(20)) * time.Second / 4)
			synctest.Wait()
			log("%v: %v", time.Now().Format("15:04:05"), env.states())
			check()
		}
	}
	for _, server := range servers {
		m.set(server, false)
		m.delay(server, 0)
		m.setUID(server, server[:1])
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	check()
	ready, shown, nameTaken := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, s := range env.Status() {
		// A duplicate whose profile is in use is shown with the cluster, too.
		own := s.Name.String() == s.Profile.String() && s.State != fleet.Duplicate
		switch {
		case s.State == fleet.Ready:
			ready[s.UID]++
		case s.State == fleet.Duplicate && s.DuplicateOf == "":
			fail("a duplicate of nothing")
		case s.State == fleet.Duplicate:
		case s.Reason == fleet.DuplicateName:
			nameTaken[exists[s.Profile.String()]] = true
		default:
			fail("not settled")
		}
		if shown[s.Profile.String()] && own {
			fail("shown twice: " + s.Profile.String())
		}
		if own {
			shown[s.Profile.String()] = true
		}
	}
	for uid, n := range ready {
		if n != 1 {
			fail(fmt.Sprintf("cluster %q is engaged %d times", uid, n))
		}
	}
	for key, server := range exists {
		if ready[server[:1]] == 0 && !nameTaken[server] && !mode.lies {
			fail("the cluster of " + key + " is not engaged")
		}
	}
	env.stop()
}
