// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
)

// kindCluster is a cluster that was listed.
type kindCluster struct {
	listed   bool
	state    string // of its containers
	changed  bool   // since its kubeconfig began to be read
	reported bool   // whether it can be used, at least once

	reading bool
	started time.Time // when it was read last
	slow    bool      // that did not end in time

	content string
	context *kubeconfig.Context // of the content
	err     error               // why the kubeconfig cannot be used, or nil
	sent    bool                // err was sent to the store

	since time.Time // when it stopped working
}

// result is a kubeconfig, or why it cannot be read.
type result struct {
	name    string
	cluster *kindCluster
	content string
	err     error
}

// isDue reports whether the kubeconfig should be read now.
func (c *kindCluster) isDue(now time.Time, unhealthy bool, interval time.Duration) bool {
	switch {
	case c.reading:
		return false
	case c.changed:
		c.since = now
		return true
	case c.err == nil && !unhealthy:
		c.since = time.Time{}
		return false
	case c.since.IsZero():
		c.since = now
		return true
	}
	// A tenth of the time that it has not worked, so that a cluster that was just
	// created is found at once, and one that is broken costs little.
	delay := min(max(now.Sub(c.since)/10, interval), max(maxDelay, interval))
	return now.Sub(c.started) >= delay
}

// read reads the kubeconfig.
func (r *run) read(ctx context.Context, now time.Time, name string, c *kindCluster) {
	c.reading, c.started, c.changed, c.slow = true, now, false, false
	used := r.engine
	r.commands.Go(func() {
		found := &result{name: name, cluster: c}
		found.content, found.err = used.kubeconfig(name)
		r.end(name)
		select {
		case r.results <- found:
		case <-ctx.Done():
		}
	})
}

// finish takes over a result. Errors are reported when the clusters have been listed
// again: without an engine they say nothing about the cluster, which may also be gone.
func (r *run) finish(found *result) {
	c := found.cluster
	if r.clusters[found.name] != c {
		return // removed in the meantime
	}
	c.reading, c.slow = false, false
	if found.err != nil {
		c.fail(fmt.Errorf("kind cluster %q: %w", found.name, found.err))
		return
	}
	if c.content != found.content || c.context == nil {
		content, err := parse(found.name, found.content)
		if err != nil {
			c.fail(err)
			return
		}
		c.content, c.context = found.content, content
	}
	c.err, c.sent = nil, false
	r.send(found.name, c)
}

// fail notes why the kubeconfig cannot be used.
func (c *kindCluster) fail(err error) {
	if c.err == nil || c.err.Error() != err.Error() {
		c.err, c.sent = err, false
	}
}

// retract drops an error that was not sent yet, as the engine may be its reason, and has
// the kubeconfig read again.
func (c *kindCluster) retract() {
	if c.err != nil && !c.sent {
		c.err, c.slow, c.changed = nil, false, true
	}
}

// report sends the error of a cluster, once.
func (r *run) report(now time.Time, name string, c *kindCluster) {
	if c.reading && !c.slow && now.Sub(c.started) >= r.options.Timeout {
		c.slow = true
		c.fail(fmt.Errorf("kind cluster %q: %w", name, slow("reading the kubeconfig", r.options.Timeout)))
	}
	if c.err != nil && !c.sent {
		r.send(name, c)
	}
}

// send sends what is known of a cluster to the store.
func (r *run) send(name string, c *kindCluster) {
	c.reported, c.sent = true, true
	cluster := profile(name)
	if cluster.Err = c.err; c.err == nil {
		cluster.Context = c.context
	}
	if err := r.store.Put(r.sink, cluster, readNothing, r.recheck); err != nil {
		r.log.Error(err, "Cannot describe a kind cluster, ignoring it", "name", name)
	}
}

// readNothing is for kubeconfigs that may not name files.
func readNothing(string) ([]byte, error) { return nil, errors.New("is not allowed") }
