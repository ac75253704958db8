// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
)

// byServer returns a probe that responds with the UID of the server; "" cannot be
// read.
func byServer(uids map[string]string) func(context.Context, string) (string, error) {
	return func(_ context.Context, server string) (string, error) {
		uid, ok := uids[server]
		if !ok {
			return "", errDown
		}
		return uid, nil
	}
}

func TestSwitch(t *testing.T) {
	for _, tc := range []struct {
		name        string
		first       *inventory.Profile
		updates     []*inventory.Profile
		uids        map[string]string
		engagements int
		uid         string // at the end
	}{
		{
			name: "two changes in a row", first: profile("a"),
			updates: []*inventory.Profile{profile("b"), profile("c")},
			uids:    map[string]string{"a": "1", "b": "1", "c": "1"}, engagements: 1, uid: "1",
		},
		{
			name: "another UID", first: profile("a"),
			updates: []*inventory.Profile{profile("b")},
			uids:    map[string]string{"a": "1", "b": "2"}, engagements: 2, uid: "2",
		},
		{
			name: "another ClusterID with the same UID", first: withClusterID(profile("a"), "x"),
			updates: []*inventory.Profile{withClusterID(profile("b"), "y")},
			uids:    map[string]string{"a": "1", "b": "1"}, engagements: 1, uid: "1",
		},
		{
			name: "the identity cannot be compared", first: profile("a"),
			updates: []*inventory.Profile{profile("b")},
			uids:    map[string]string{"a": "1", "b": ""}, engagements: 2,
		},
		{
			name: "the UID is kept while it cannot be read", first: withClusterID(profile("a"), "x"),
			updates: []*inventory.Profile{withClusterID(profile("b"), "x"), profile("c")},
			uids:    map[string]string{"a": "1", "b": "", "c": "1"}, engagements: 1, uid: "1",
		},
		{
			name: "the UID that was kept is compared", first: withClusterID(profile("a"), "x"),
			updates: []*inventory.Profile{withClusterID(profile("b"), "x"), withClusterID(profile("c"), "x")},
			uids:    map[string]string{"a": "1", "b": "", "c": "2"}, engagements: 2, uid: "2",
		},
		{
			name: "the ClusterID is kept while it is missing", first: withClusterID(profile("a"), "x"),
			updates: []*inventory.Profile{profile("b"), withClusterID(profile("c"), "x")},
			uids:    map[string]string{"a": "1", "b": "1", "c": ""}, engagements: 1, uid: "1",
		},
		{
			name: "a UID that was not read again does not vouch for another ClusterID", first: withClusterID(profile("a"), "x"),
			updates: []*inventory.Profile{withClusterID(profile("b"), "x"), withClusterID(profile("b"), "y")},
			uids:    map[string]string{"a": "1", "b": ""}, engagements: 2,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
				env.probe = byServer(tc.uids)
				env.add(t, tc.first)
				for _, p := range tc.updates {
					env.update(p)
					env.is(g, worker.Ready, worker.Engaged, "")
				}
				g.Expect(env.engagements()).To(Equal(tc.engagements))
				g.Expect(env.Status().UID).To(Equal(tc.uid))
			})
		})
	}
}

func TestUIDLearnedLater(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		var uid atomic.Value
		uid.Store("")
		env.probe = func(_ context.Context, server string) (string, error) {
			if server == "other" {
				return "2", nil
			}
			return uid.Load().(string), nil
		}
		env.add(t, profile("a"))
		g.Expect(env.Status().UID).To(BeEmpty())
		uid.Store("1")
		pass(time.Minute)
		g.Expect(env.Status().UID).To(Equal("1"), "read by a health probe")

		env.update(profile("b"))
		g.Expect(env.engagements()).To(Equal(1), "the identity can be compared")
		env.update(profile("other"))
		g.Expect(env.engagements()).To(Equal(2))

		uid.Store("3")
		env.update(profile("c"))
		g.Expect(env.engagements()).To(Equal(3))
		uid.Store("4")
		pass(time.Minute)
		g.Expect(env.engagements()).To(Equal(4), "a health probe has read another UID")
	})
}

func TestKeptUIDIsProbed(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		var uid atomic.Value
		uid.Store("1")
		env.probe = func(context.Context, string) (string, error) { return uid.Load().(string), nil }
		env.add(t, withClusterID(profile("a"), "x"))
		uid.Store("")
		env.update(withClusterID(profile("b"), "x"))
		g.Expect(env.Status().UID).To(Equal("1"))
		g.Expect(env.engagements()).To(Equal(1))
		uid.Store("2")
		pass(time.Minute)
		g.Expect(env.Status().UID).To(Equal("2"))
		g.Expect(env.engagements()).To(Equal(2))
	})
}

// A UID that was known before a switch that could not read it is compared with the
// next that can.
func TestKeptUIDIsCompared(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		env.probe = func(_ context.Context, server string) (string, error) {
			return map[string]string{"a": "1", "unreadable": "", "same": "1", "other": "2"}[server], nil
		}
		env.add(t, withClusterID(profile("a"), "x"))
		for _, server := range []string{"unreadable", "same", "unreadable"} {
			env.update(withClusterID(profile(server), "x"))
			g.Expect(env.Status()).To(And(HaveField("UID", "1"), HaveField("Server", server)))
		}
		g.Expect(env.engagements()).To(Equal(1))
		env.update(withClusterID(profile("other"), "x"))
		g.Expect(env.engagements()).To(Equal(2))
		g.Expect(env.Status().UID).To(Equal("2"))
	})
}

func TestUnswitchableConnection(t *testing.T) {
	for _, tc := range []struct {
		name       string
		uid        string // of the next server
		transition string
		error      string
	}{
		{"same identity", "1", "Pending AccessChanged", "access changed, and the connection cannot be switched"},
		{"other identity", "2", "Pending IdentityChanged", "cluster identity changed from UID 1 to UID 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
				env.switches = false
				env.probe = byServer(map[string]string{"a": "1", "b": tc.uid})
				stopped := make(chan struct{})
				env.start = func(ctx context.Context) error {
					<-ctx.Done()
					<-stopped
					return nil
				}
				env.add(t, profile("a"))
				env.take()
				env.update(profile("b"))
				env.is(g, worker.Pending, worker.Reason(tc.transition[len("Pending "):]), tc.error)
				close(stopped)
				pass(time.Second)
				env.is(g, worker.Ready, worker.Engaged, "")
				g.Expect(env.take()[0]).To(Equal(tc.transition))
				g.Expect(env.engagements()).To(Equal(2))
			})
		})
	}
	t.Run("same fingerprint", func(t *testing.T) {
		inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
			env.switches = false
			env.add(t, profile("a"))
			again := profile("a")
			again.UID = "recreated"
			env.update(again)
			g.Expect(env.connects()).To(Equal(2))
			g.Expect(env.engagements()).To(Equal(1))
			g.Expect(env.connections[1].isReleased()).To(BeTrue())
		})
	})
}

func TestUnusableAccess(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		env.probe = byServer(map[string]string{"a": "1", "c": "1"})
		env.add(t, profile("a"))
		env.update(profile("b"))
		env.is(g, worker.Ready, worker.AccessUpdateFailed, "down")
		g.Expect(env.Status().Server).To(Equal("a"))
		connects := env.connects()
		pass(4 * time.Second)
		g.Expect(env.connects()).To(BeNumerically(">", connects), "retried")
		env.update(profile("c"))
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.Status().Server).To(Equal("c"))
		g.Expect(env.engagements()).To(Equal(1))
		for _, c := range env.connections {
			if c.get() == "b" {
				g.Expect(c.isReleased()).To(BeTrue())
			}
		}
	})
}

// The new access cannot be used while the cluster does not respond with the current
// one: both errors are in the status.
func TestUnusableAccessWhileDown(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		var down atomic.Bool
		env.probe = func(context.Context, string) (string, error) {
			if down.Load() {
				return "", errDown
			}
			return "1", nil
		}
		rejected := errors.New("access rejected")
		env.connect = func(_ context.Context, p *inventory.Profile) error {
			if p.Status.AccessProviders[0].Cluster.Server == "b" {
				return rejected
			}
			return nil
		}
		env.add(t, profile("a"))
		down.Store(true)
		pass(time.Minute)
		env.is(g, worker.Degraded, worker.Unreachable, "down")
		g.Expect(env.Status().AccessError).To(BeEmpty())
		env.update(profile("b"))
		env.is(g, worker.Degraded, worker.Unreachable, "down")
		g.Expect(env.Status().AccessError).To(Equal("access rejected"))

		down.Store(false)
		pass(time.Minute)
		env.is(g, worker.Ready, worker.AccessUpdateFailed, "access rejected")
		g.Expect(env.Status().AccessError).To(Equal("access rejected"))
		env.update(profile("a"))
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.Status().AccessError).To(BeEmpty())

		env.update(profile("b"))
		g.Expect(env.Status().AccessError).To(Equal("access rejected"))
		env.Stop()
		synctest.Wait()
		g.Expect(env.Status().AccessError).To(BeEmpty())
	})
}

func TestChangeDuringReconnect(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		env.connect = func(ctx context.Context, p *inventory.Profile) error {
			if p.Status.AccessProviders[0].Cluster.Server == "hangs" {
				return hang(ctx)
			}
			return nil
		}
		env.add(t, profile("a"))
		env.Update(profile("hangs"))
		env.Update(profile("b"))
		synctest.Wait()
		env.update(profile("hangs"))
		g.Expect(env.Status().Server).To(Equal("b"))
		env.update(profile("c"))
		g.Expect(env.Status().Server).To(Equal("c"))
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.engagements()).To(Equal(1))
	})
}

func TestUnauthorizedProbe(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		var rejected atomic.Bool
		env.probe = func(_ context.Context, server string) (string, error) {
			if server == "a" && rejected.Load() {
				return "", identity.ErrUnauthorized
			}
			return "uid", nil
		}
		env.add(t, profile("a"))
		rejected.Store(true)
		env.suspect.Store(true) // as after a request of a controller
		connects := env.connects()
		pass(12 * time.Second)
		g.Expect(env.connects()).To(Equal(connects+1), "resolved again after one 401")
		env.is(g, worker.Ready, worker.Engaged, "")
		pass(time.Minute)
		env.is(g, worker.Degraded, worker.Unauthorized, "401")
		env.update(profile("b"))
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.engagements()).To(Equal(1))
	})
}
