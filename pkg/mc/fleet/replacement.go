// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// replacement replaces the connections of an Access that are dead, although nothing
// has closed them: a router or a node has gone. HTTP/2 notices that after 45 s, from
// 30 s without data and 15 s without a response to its ping.
type replacement struct {
	trying sync.Mutex // held while a new connection is tried

	switching sync.Mutex // guards what follows, and is held during switches
	switches  int
	answered  bool   // the cluster has answered a probe
	uid       string // the last one that it answered, or ""
}

type probeAnswer struct {
	uid string
	err error
}

// Probe implements worker.Connection. If there is no answer in half of the time
// limit, another probe is sent over a new connection. If that is answered first, new
// connections replace those in use.
func (c *connection) Probe(ctx context.Context) (uid string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	first := c.goProbe(ctx)
	defer func() {
		cancel()
		if err == nil {
			c.switching.Lock()
			defer c.switching.Unlock()
			c.answered, c.uid = true, cmp.Or(uid, c.uid)
		}
	}()
	timer := c.fleet.options.Connection.Clock.NewTimer(c.fleet.options.Connection.Probe.Timeout / 2)
	defer timer.Stop()
	select {
	case answer := <-first:
		return answer.uid, answer.err
	case <-timer.C():
	}
	if c.trying.TryLock() {
		defer c.trying.Unlock()
		if answer, ok := c.tryNewConnection(ctx, cancel, first); ok {
			return answer.uid, answer.err
		}
	}
	answer := <-first
	return answer.uid, answer.err
}

// goProbe sends a probe. It ends with the context.
func (c *connection) goProbe(ctx context.Context) <-chan probeAnswer {
	answer := make(chan probeAnswer, 1)
	go func() {
		uid, err := c.probe(ctx)
		answer <- probeAnswer{uid, err}
	}()
	return answer
}

// tryNewConnection sends another probe over a new connection, and replaces the
// connections if it is answered before the first one. It reports whether there is an
// answer.
func (c *connection) tryNewConnection(ctx context.Context, cancel func(), first <-chan probeAnswer) (probeAnswer, bool) {
	c.switching.Lock()
	switches, answered, uid := c.switches, c.answered, c.uid
	c.switching.Unlock()
	if !answered {
		return probeAnswer{}, false // its connections are new
	}
	access := c.access.Clone()
	next, err := (&backend{c.fleet}).newConnection(ctx, access)
	if err != nil {
		access.Release()
		return probeAnswer{}, false
	}
	defer next.Release() // has no effect after a switch
	trial, stop := context.WithCancel(ctx)
	second := next.goProbe(trial)
	select {
	case answer := <-first:
		stop()
		<-second
		return answer, true
	case answer := <-second:
		stop()
		if answer.err != nil {
			return answer, false
		}
		if uid == "" || answer.uid == "" || uid == answer.uid { // otherwise the cluster is engaged again
			c.replaceBy(ctx, next, switches)
		}
		cancel()
		<-first
		return answer, true
	}
}

// replaceBy switches to the connection unless there was another switch.
func (c *connection) replaceBy(ctx context.Context, next *connection, switches int) {
	c.switching.Lock()
	defer c.switching.Unlock()
	if c.switches == switches && c.switchTo(next) {
		log.FromContext(ctx).Info("Connection did not respond, replaced it", "server", c.Server())
	}
}
