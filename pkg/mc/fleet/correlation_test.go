// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// members is a fleet.Connector of clusters in virtual time.
type members struct {
	mu      sync.Mutex
	uids    map[string]string        // of servers; "" cannot be read
	down    map[string]bool          // servers
	delays  map[string]time.Duration // of the responses of servers
	counts  map[string]int           // how often servers were connected
	running map[string]int           // how many clusters run, by UID
	twice   bool                     // one did twice at once
}

func newMembers(uids map[string]string) *members {
	return &members{uids: uids, down: map[string]bool{}, delays: map[string]time.Duration{}, counts: map[string]int{}, running: map[string]int{}}
}

func (m *members) Connect(_ context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	server := serverOf(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[server]++
	return &fleet.Connection{Cluster: &memberCluster{members: m, server: server}, Server: server, Fingerprint: server, Probe: func(ctx context.Context) (string, error) {
		m.mu.Lock()
		delay := m.delays[server]
		m.mu.Unlock()
		sleep(ctx, delay)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.down[server] {
			return "", errors.New("no response")
		}
		return m.uids[server], nil
	}}, nil
}

// memberCluster is the cluster of a server.
type memberCluster struct {
	fakeCluster
	members *members
	server  string
}

func (c *memberCluster) Start(ctx context.Context) error {
	m := c.members
	m.mu.Lock()
	uid := m.uids[c.server]
	m.mu.Unlock()
	m.run(uid, 1)
	defer m.run(uid, -1)
	return c.fakeCluster.Start(ctx)
}

func (m *members) run(uid string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[uid] += n
	m.twice = m.twice || uid != "" && m.running[uid] > 1
}

func (m *members) set(server string, down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down[server] = down
}

func (m *members) setUID(server, uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uids[server] = uid
}

func (m *members) delay(server string, delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delays[server] = delay
}

func (m *members) connects(server string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[server]
}

// member returns a profile of a member in a namespace.
func member(namespace, name, server, id string) *inventory.Profile {
	p := profile(name, server)
	p.Namespace = namespace
	p.UID += types.UID("-" + namespace)
	if id != "" {
		p.Labels = map[string]string{inventory.LabelMemberID: id}
	}
	return p
}

// states returns the state of each profile, and the name of its cluster if that is
// another one.
func (env *testEnv) states() []string {
	var states []string
	for _, s := range env.Status() {
		text := string(s.State)
		if s.DuplicateOf != "" {
			text += " of " + s.DuplicateOf.String()
		}
		if s.Name.String() != s.Profile.String() {
			text += " as " + s.Name.String()
		}
		states = append(states, s.Profile.String()+": "+text)
	}
	return states
}

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

// When the profile in use is removed or stops working, its cluster goes on with
// another one: nothing is listed, and no event is missed.
func TestAnotherProfileTakesOver(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(env *testEnv, c *mctest.Cluster)
	}{
		{"the profile is removed", func(env *testEnv, _ *mctest.Cluster) { env.source.remove("a") }},
		{"its credentials are revoked", func(_ *testEnv, c *mctest.Cluster) {
			c.RevokeToken("a")
			c.CloseConnections()
		}},
		{"its server does not exist any more, and no plugin runs", func(env *testEnv, c *mctest.Cluster) {
			env.credentials.mu.Lock()
			delete(env.credentials.configs, "https://a.example")
			env.credentials.mu.Unlock()
			c.RevokeToken("a")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			c.AddToken("a", "a", "system:masters")
			c.AddToken("b", "b", "system:masters")
			env := start(t, nil, func(o *fleet.Options) {
				o.Connection.Probe = fleet.ProbeOptions{Interval: 20 * time.Millisecond, Timeout: time.Second, FailureThreshold: 2}
			})
			env.credentials.set("https://a.example", c.ConfigFor("a"))
			env.credentials.set("https://b.example", c.ConfigFor("b"))
			env.source.put(member("fleet", "a", "https://a.example", "m"))
			g.Eventually(env.state("fleet/a")).Should(Equal(fleet.Ready))
			env.source.put(member("fleet", "b", "https://b.example", "m"))
			g.Eventually(env.state("fleet/b")).Should(Equal(fleet.Duplicate))
			cl := env.aware.of("fleet/a")[0].cluster
			informer, err := cl.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{})
			g.Expect(err).NotTo(HaveOccurred())
			seen := make(chan string, 100)
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) { seen <- o.(client.Object).GetName() }})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.Create(configMap("before"))).To(Succeed())
			g.Eventually(seen).Should(Receive(Equal("before")))
			held, err := kubernetes.NewForConfig(cl.GetConfig())
			g.Expect(err).NotTo(HaveOccurred())
			c.ResetRequests()

			tc.fail(env, c)
			g.Expect(c.Create(configMap("meanwhile"))).To(Succeed())
			g.Eventually(func() string { return cl.GetConfig().BearerToken }).Should(Equal("b"))
			g.Eventually(env.state("fleet/a")).Should(Equal(fleet.Ready))
			c.RevokeToken("a")
			g.Eventually(seen).Should(Receive(Equal("meanwhile")))
			g.Expect(c.Create(configMap("after"))).To(Succeed())
			g.Eventually(seen).Should(Receive(Equal("after")))
			_, err = held.CoreV1().ConfigMaps("default").Get(t.Context(), "after", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred(), "clients that users hold go on")
			g.Expect(c.Requests("list", "configmaps")).To(BeZero())
			g.Expect(env.aware.of("fleet/a")).To(HaveLen(1))
			g.Expect(env.aware.of("fleet/b")).To(BeEmpty())
			inUse, ok := fleet.ProfileFrom(cl)
			g.Expect(ok).To(BeTrue())
			g.Expect(inUse.Name).To(Equal("b"))
			g.Expect(fleet.ProfilesFrom(cl)).To(ContainElement(inUse))
		})
	}
}

// Whatever happens to profiles and servers, no cluster is engaged twice at once, and
// in the end each cluster that can be reached is engaged.
func TestClustersAreEngagedOnce(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			m := newMembers(map[string]string{"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b"})
			servers := []string{"a1", "a2", "a3", "b1", "b2"}
			env := start(t, nil, withConnector(m))
			check := func() {
				m.mu.Lock()
				twice := m.twice
				m.mu.Unlock()
				if twice {
					t.Fatalf("seed %d: a cluster runs twice at once: %v", seed, env.states())
				}
				engaged := map[string]string{}
				for _, s := range env.Status() {
					if s.State != fleet.Ready && s.State != fleet.Degraded {
						continue
					}
					if other := engaged[s.UID]; other != "" {
						t.Fatalf("seed %d: cluster %s is engaged as %s and %s", seed, s.UID, other, s.Name)
					}
					engaged[s.UID] = s.Name.String()
				}
			}
			exists := map[string]bool{}
			for range 60 {
				name := string('p' + rune(random.IntN(4)))
				server := servers[random.IntN(len(servers))]
				namespace := []string{"fleet", "other"}[random.IntN(2)]
				switch random.IntN(4) {
				case 0, 1:
					id := []string{"", "m" + server[:1]}[random.IntN(2)]
					env.source.put(member(namespace, name, server, id))
					exists[namespace+"/"+name] = true
				case 2:
					env.source.events <- func(sink inventory.Sink) { sink.Remove(inventory.Key{Namespace: namespace, Name: name}) }
					delete(exists, namespace+"/"+name)
				case 3:
					m.set(server, random.IntN(2) == 0)
				}
				time.Sleep(time.Duration(random.IntN(20)) * time.Second / 4)
				synctest.Wait()
				check()
			}
			for _, server := range servers {
				m.set(server, false)
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			check()
			ready := map[string]int{}
			for _, s := range env.Status() {
				switch s.State {
				case fleet.Ready:
					ready[s.UID]++
				case fleet.Duplicate:
				default:
					// Another cluster has the name: it was that of a profile of this cluster.
					if s.Reason != fleet.DuplicateName || len(env.aware.of(s.Name)) == 0 {
						t.Errorf("seed %d: %s (%s): %v", seed, s.Name, s.Profile, s)
					}
				}
			}
			for uid, n := range ready {
				if n != 1 {
					t.Errorf("seed %d: cluster %s is engaged %d times", seed, uid, n)
				}
			}
			if len(exists) > 0 && len(ready) == 0 {
				t.Errorf("seed %d: no cluster is engaged: %v", seed, env.states())
			}
			env.stop()
		})
		if t.Failed() {
			return
		}
	}
}
