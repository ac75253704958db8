// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/providers/internal/files"
	"github.com/rollcall-dev/rollcall/providers/internal/kubeconfigs"
)

const (
	// managerName is the cluster manager of the profiles.
	managerName = "file"

	// accessProvider is the name of the access provider of the profiles.
	accessProvider = "kubeconfig-file"

	// maxUnsettled is how long files may keep changing before the inventory counts as
	// listed without them.
	maxUnsettled = 5 * time.Second
)

// source is the fleet's source: the contexts of kubeconfig files.
type source struct {
	options *Options
	store   *kubeconfigs.Store
	recheck func(inventory.Key)

	following atomic.Bool
	wake      chan struct{}      // after a change of following or hidden
	requests  chan chan struct{} // to read the files, and close the channel

	mu     sync.Mutex                        // guards hidden
	hidden map[string]*kubeconfig.Kubeconfig // by cluster name: the content until which it is hidden, nil if not known yet
}

func newSource(options *Options, store *kubeconfigs.Store) *source {
	return &source{
		options: options, store: store, wake: make(chan struct{}, 1), requests: make(chan chan struct{}),
		hidden: map[string]*kubeconfig.Kubeconfig{},
	}
}

// follow has the source follow the files, now or when it runs.
func (s *source) follow() {
	s.following.Store(true)
	s.notify()
}

// hide hides a cluster until the content of its file changes.
func (s *source) hide(name string) {
	s.mu.Lock()
	s.hidden[name] = nil
	s.mu.Unlock()
	s.notify()
}

func (s *source) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// isHidden reports whether the cluster of a kubeconfig is hidden.
func (s *source) isHidden(name string, current *kubeconfig.Kubeconfig) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, hidden := s.hidden[name]
	switch {
	case !hidden:
		return false
	case content == nil:
		s.hidden[name] = current
		return true
	case content != current:
		delete(s.hidden, name)
		return false
	}
	return true
}

// forget forgets hidden clusters that do not exist.
func (s *source) forget(exists map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.hidden {
		if !exists[name] {
			delete(s.hidden, name)
		}
	}
}

// String names the source for logs.
func (s *source) String() string {
	var parts []string
	if len(s.options.KubeconfigFiles) > 0 {
		parts = append(parts, strings.Join(s.options.KubeconfigFiles, ", "))
	}
	for _, dir := range s.options.KubeconfigDirs {
		parts = append(parts, filepath.Join(dir, "{"+strings.Join(s.options.KubeconfigGlobs, ",")+"}"))
	}
	return "kubeconfig files " + strings.Join(parts, ", ")
}

// Run implements inventory.Source. It does not fail.
func (s *source) Run(ctx context.Context, sink inventory.Sink) error {
	log.FromContext(ctx).Info("Reading kubeconfigs", "source", s.String())
	notifier := files.NewNotifier(log.FromContext(ctx))
	defer notifier.Close()
	r := newRun(s, sink, log.FromContext(ctx))
	started, synced := time.Now(), false
	var waiting []chan struct{} // of requests
	for {
		again := r.scan(notifier)
		if again {
			notifier.After(files.SettleTime)
		}
		if !again || time.Since(started) >= maxUnsettled {
			if !synced {
				sink.Synced()
				synced = true
			}
			for _, done := range waiting {
				close(done)
			}
			waiting = nil
		}
		changed := notifier.C
		if !again && !s.following.Load() {
			changed = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-s.wake:
		case done := <-s.requests:
			waiting = append(waiting, done)
			started = time.Now()
		}
	}
}

// clusterName returns the name of a context's cluster.
func (s *source) clusterName(path, context string) string {
	return path + s.options.Separator + context
}

// cluster returns what is found of a cluster, but its content.
func (s *source) cluster(name, path, context string) (inventory.Key, kubeconfigs.Cluster) {
	key := inventory.Key{Namespace: "default", Name: inventory.ProfileName(name)}
	reference := map[string]string{"file": path}
	if context != "" {
		reference["context"] = context
	}
	return key, kubeconfigs.Cluster{
		Profile:        inventory.Synthetic{ClusterName: name, Manager: managerName, Namespace: key.Namespace, Name: key.Name},
		AccessProvider: accessProvider,
		Reference:      reference,
	}
}

// origin names a file in errors.
func origin(path string) string { return fmt.Sprintf("file %s", path) }
