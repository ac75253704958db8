// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/providers/internal/kubeconfigs"
)

const (
	// managerName is the cluster manager of the profiles.
	managerName = "kind"

	// accessProvider is the name of the access provider of the profiles.
	accessProvider = "kind"

	// maxReads is the number of kubeconfigs that are read at once.
	maxReads = 8

	// maxDelay is the longest time between two reads for a cluster that does not work.
	maxDelay = 30 * time.Second

	// stopTimeout is how long Run waits for commands that cannot be interrupted.
	stopTimeout = 2 * time.Second
)

// source is the fleet's source: the clusters of kind.
type source struct {
	options   *Options
	store     *kubeconfigs.Store
	recheck   func(inventory.Key)
	unhealthy func() map[inventory.Key]bool

	mu      sync.Mutex      // guards what follows
	reading map[string]bool // clusters whose kubeconfig is being read, also by an earlier run
}

func newSource(options *Options, store *kubeconfigs.Store) *source {
	return &source{options: options, store: store, reading: map[string]bool{}}
}

// String names the source for logs.
func (s *source) String() string {
	if s.options.Prefix == "" {
		return "kind clusters"
	}
	return fmt.Sprintf("kind clusters with prefix %q", s.options.Prefix)
}

// begin reports whether the kubeconfig of a cluster may be read: it is not being read.
func (s *source) begin(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading[name] {
		return false
	}
	s.reading[name] = true
	return true
}

func (s *source) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reading, name)
}

// keyOf returns the key of the profile of a cluster.
func keyOf(name string) inventory.Key {
	return inventory.Key{Namespace: "default", Name: inventory.ProfileName(name)}
}

// Run implements inventory.Source. It does not fail.
func (s *source) Run(ctx context.Context, sink inventory.Sink) error {
	r := &run{
		source: s, sink: sink, log: log.FromContext(ctx),
		clusters: map[string]*kindCluster{}, results: make(chan *result),
	}
	r.log.Info("Reading kubeconfigs", "source", s.String())
	if value := os.Getenv(engineVariable); value != "" && chosen(value) == nil {
		r.log.Info("Ignoring unknown value of "+engineVariable+": must be docker, podman, nerdctl, finch or nerdctl.lima", "value", value)
	}
	defer r.wait()
	ticker := time.NewTicker(s.options.Interval)
	defer ticker.Stop()
	for {
		r.look(ctx)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return nil
			case found := <-r.results:
				r.finish(found)
			case <-ticker.C:
				waiting = false
			}
		}
	}
}

// run is one run of the source. Only its goroutine uses it.
type run struct {
	*source
	sink   inventory.Sink
	log    logr.Logger
	outage string // why the clusters cannot be listed, or ""
	synced bool

	detected *engine // last, nil until there was one
	engine   *engine // nil until one has listed its containers
	state    string  // of all containers, when the clusters were listed last
	clusters map[string]*kindCluster
	listing  *listing // that did not end in time

	commands sync.WaitGroup // that cannot be interrupted
	results  chan *result
}

// look looks for changes.
func (r *run) look(ctx context.Context) {
	err := r.list(ctx)
	if ctx.Err() != nil {
		return
	}
	r.logOutage(err)
	if err != nil {
		for _, c := range r.clusters {
			c.retract()
		}
		return
	}
	now := time.Now()
	unhealthy := r.unhealthy()
	reads, unknown := 0, false
	for name, c := range r.clusters {
		r.report(now, name, c)
		if c.reading && !c.slow {
			reads++
		}
	}
	for name, c := range r.clusters {
		if reads < maxReads && c.isDue(now, unhealthy[keyOf(name)], r.options.Interval) && r.begin(name) {
			reads++
			r.read(ctx, now, name, c)
		}
		unknown = unknown || !c.reported
	}
	if !unknown && !r.synced {
		r.synced = true
		r.sink.Synced()
	}
}

// logOutage logs each reason why clusters cannot be listed once, and the end.
func (r *run) logOutage(err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	switch reason {
	case r.outage:
	case "":
		r.log.Info("kind clusters can be listed again")
	default:
		r.log.Info("Cannot list kind clusters, keeping the clusters as they are", "error", reason)
	}
	r.outage = reason
}

// list brings clusters up to date, if a container has changed.
func (r *run) list(ctx context.Context) error {
	used := r.engine
	if used == nil {
		var err error
		if used, err = detect(ctx, r.log, r.options.Timeout, r.detected); err != nil {
			return err
		}
		r.detected = used
	}
	state, err := used.containers(ctx, clusterLabel)
	if err != nil {
		return err
	}
	if r.engine != nil && r.state == state {
		return nil
	}
	names, err := r.names(ctx, used)
	if err != nil {
		return err
	}
	found := map[string]string{}
	for _, name := range names {
		if name == "" || !strings.HasPrefix(name, r.options.Prefix) {
			continue
		}
		if found[name], err = used.containers(ctx, clusterLabel+"="+name); err != nil {
			return err
		}
	}
	if r.engine == nil {
		r.log.Info("Found a container engine", "command", used.command)
	}
	r.engine, r.state = used, state
	r.update(found)
	return nil
}

// update takes over the containers of all clusters.
func (r *run) update(found map[string]string) {
	keep := map[inventory.Key]bool{}
	for name, state := range found {
		keep[keyOf(name)] = true
		c := r.clusters[name]
		if c == nil {
			c = &kindCluster{}
			r.clusters[name] = c
		}
		if !c.listed || c.state != state {
			c.listed, c.state, c.changed = true, state, true
		}
	}
	for name := range r.clusters {
		if !keep[keyOf(name)] {
			delete(r.clusters, name)
		}
	}
	for _, key := range r.store.Keys() {
		if !keep[key] {
			r.store.Remove(r.sink, key)
		}
	}
}

// listing is a call of kind's library that lists the clusters.
type listing struct {
	done  chan struct{}
	names []string // valid once done is closed, as is err
	err   error
}

// names returns the names of all clusters.
func (r *run) names(ctx context.Context, used *engine) ([]string, error) {
	errNames := slow(used.command+" ps", r.options.Timeout)
	if r.listing != nil {
		select {
		case <-r.listing.done: // what it has found may be out of date
			r.listing = nil
		default:
			return nil, errNames
		}
	}
	l := &listing{done: make(chan struct{})}
	r.commands.Go(func() {
		defer close(l.done)
		l.names, l.err = used.clusters()
	})
	timer := time.NewTimer(r.options.Timeout)
	defer timer.Stop()
	select {
	case <-l.done:
		return l.names, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		r.listing = l
		return nil, errNames
	}
}

// wait waits for commands that cannot be interrupted.
func (r *run) wait() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.commands.Wait()
	}()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		r.log.Info("A command of the container engine does not end, not waiting for it")
	}
}

// profile returns what is known of a cluster without its kubeconfig.
func profile(name string) kubeconfigs.Cluster {
	key := keyOf(name)
	return kubeconfigs.Cluster{
		Profile:        inventory.Synthetic{ClusterName: name, Manager: managerName, Namespace: key.Namespace, Name: key.Name},
		AccessProvider: accessProvider,
		Reference:      map[string]string{"clusterName": name},
	}
}

// parse returns the current context of a kubeconfig.
func parse(name, content string) (*kubeconfig.Context, error) {
	parsed, err := kubeconfig.Parse(fmt.Sprintf("kind cluster %q", name), "", []byte(content))
	if err != nil {
		return nil, err
	}
	return parsed.Context("")
}
