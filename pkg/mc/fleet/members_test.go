// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
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
	cl := &memberCluster{members: m}
	return &fleet.Connection{Cluster: cl, Server: server, Fingerprint: server, Probe: func(ctx context.Context) (string, error) {
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
		cl.uid = m.uids[server]
		return cl.uid, nil
	}}, nil
}

// memberCluster is the cluster of a server.
type memberCluster struct {
	fakeCluster
	members *members
	uid     string // of the last response, guarded by members.mu
}

func (c *memberCluster) Start(ctx context.Context) error {
	m := c.members
	m.mu.Lock()
	uid := c.uid // which was verified: that of the server may change at the same instant
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
