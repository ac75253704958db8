// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/providers/internal/files"
	"github.com/rollcall-dev/rollcall/providers/internal/kubeconfigs"
)

const (
	// managerName is the cluster manager of the profiles.
	managerName = "kubeconfig"

	// accessProvider is the name of a known plugin that reads kubeconfigs in Secrets: a
	// published profile can be used by programs with that plugin.
	accessProvider = "kubeconfig-secretreader"
)

// source is the fleet's source: the Secrets of a management cluster that may not be
// known before Run.
type source struct {
	options *Options
	store   *kubeconfigs.Store
	recheck func(inventory.Key)
	hub     atomic.Pointer[rest.Config]
}

func newSource(options *Options, store *kubeconfigs.Store) *source {
	s := &source{options: options, store: store}
	if options.Hub != nil {
		s.defaultHub(options.Hub)
	}
	return s
}

// defaultHub sets the management cluster unless it is set already.
func (s *source) defaultHub(config *rest.Config) { s.hub.CompareAndSwap(nil, config) }

// String names the source for logs.
func (s *source) String() string {
	return fmt.Sprintf("Secrets with label %s=true in namespace %q", s.options.KubeconfigSecretLabel, s.options.Namespace)
}

// Run implements inventory.Source. It fails only if it cannot be set up.
func (s *source) Run(ctx context.Context, sink inventory.Sink) error {
	log.FromContext(ctx).Info("Reading kubeconfigs", "source", s.String())
	r := &run{source: s, sink: sink, found: map[inventory.Key]kubeconfigs.Cluster{}, reader: files.NewReader()}
	w, err := s.watch(ctx)
	if err != nil {
		return fmt.Errorf("kubeconfig provider: %w", err)
	}
	defer w.wait()
	return r.loop(ctx, w)
}

// run is one run of the source. Only its goroutine uses it.
type run struct {
	*source
	sink     inventory.Sink
	found    map[inventory.Key]kubeconfigs.Cluster
	reader   *files.Reader
	notifier *files.Notifier // nil unless kubeconfigs may name files
}

func (r *run) loop(ctx context.Context, w *watcher) error {
	var changed <-chan struct{}
	if r.options.Kubeconfig.AllowPaths || r.options.Kubeconfig.Trusted {
		r.notifier = files.NewNotifier(log.FromContext(ctx))
		defer r.notifier.Close()
		changed = r.notifier.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-w.events:
			r.handle(ctx, event)
		case <-changed:
			r.readFiles(ctx)
		}
	}
}

// event is a Secret that was put, one that was removed, or the end of the first list.
type event struct {
	put     *corev1.Secret
	removed inventory.Key
	synced  bool
}

func (r *run) handle(ctx context.Context, e event) {
	switch {
	case e.synced:
		r.sink.Synced()
		return
	case e.put != nil && e.put.Data[r.options.KubeconfigSecretKey] != nil:
		cluster := r.cluster(e.put)
		key := inventory.Key{Namespace: e.put.Namespace, Name: e.put.Name}
		r.found[key] = cluster
		if r.notifier != nil {
			r.scan()
		}
		r.send(ctx, key, cluster)
		return
	case e.put != nil: // the key was removed
		e.removed = inventory.Key{Namespace: e.put.Namespace, Name: e.put.Name}
		if _, ok := r.found[e.removed]; !ok {
			log.FromContext(ctx).Info("Secret has no kubeconfig, ignoring it until it has", "secret", e.removed, "key", r.options.KubeconfigSecretKey)
		}
	}
	delete(r.found, e.removed)
	r.store.Remove(r.sink, e.removed)
}

// send sends a cluster, unless one of its files may be incomplete: then readFiles does.
func (r *run) send(ctx context.Context, key inventory.Key, cluster kubeconfigs.Cluster) {
	if cluster.Context != nil && r.reader.Pending(cluster.Context.Files()...) {
		return
	}
	if err := r.store.Put(r.sink, cluster, r.reader.Read, r.recheck); err != nil {
		log.FromContext(ctx).Error(err, "Cannot describe the cluster of a Secret, ignoring it", "secret", key)
	}
}

// cluster returns the cluster of a Secret.
func (r *run) cluster(secret *corev1.Secret) kubeconfigs.Cluster {
	c := kubeconfigs.Cluster{
		Profile: inventory.Synthetic{
			ClusterName: secret.Name, Manager: managerName, Namespace: secret.Namespace, Name: secret.Name, Labels: secret.Labels,
		},
		AccessProvider: accessProvider,
		Reference:      map[string]string{"namespace": secret.Namespace, "name": secret.Name, "key": r.options.KubeconfigSecretKey},
	}
	parsed, err := kubeconfig.Parse(fmt.Sprintf("Secret %s/%s", secret.Namespace, secret.Name), "", secret.Data[r.options.KubeconfigSecretKey])
	if err == nil {
		c.Context, err = parsed.Context("")
	}
	c.Err = err
	return c
}

// scan reads the files that kubeconfigs name, and watches them.
func (r *run) scan() {
	var paths []string
	for cluster := range maps.Values(r.found) {
		if cluster.Context != nil {
			paths = append(paths, cluster.Context.Files()...)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	r.notifier.Watch(paths, nil)
	if r.reader.Scan(paths) {
		r.notifier.After(files.SettleTime)
	}
}

// readFiles takes over files that have changed.
func (r *run) readFiles(ctx context.Context) {
	r.scan()
	for key, cluster := range r.found {
		if cluster.Context != nil && len(cluster.Context.Files()) > 0 {
			r.send(ctx, key, cluster)
		}
	}
}
