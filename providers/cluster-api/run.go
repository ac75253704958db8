// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/providers/internal/files"
	"github.com/rollcall-dev/rollcall/providers/internal/kubeconfigs"
)

// Run implements inventory.Source. It fails only if it cannot be set up.
func (s *source) Run(ctx context.Context, sink inventory.Sink) error {
	log.FromContext(ctx).Info("Reading clusters of Cluster API", "source", s.String())
	r := &run{
		source: s, sink: sink, reader: files.NewReader(),
		clusters: map[inventory.Key]*state{}, secrets: map[inventory.Key]*corev1.Secret{},
		unsynced: 2, // objects and Secrets
	}
	w, err := s.watch(ctx)
	if err != nil {
		return fmt.Errorf("cluster API provider: %w", err)
	}
	defer w.wait()
	if s.options.GetSecret != nil {
		r.unsynced-- // it may not need Secrets
	}
	return r.loop(ctx, w)
}

// run is one run of the source. Only its goroutine uses it.
type run struct {
	*source
	sink     inventory.Sink
	clusters map[inventory.Key]*state
	secrets  map[inventory.Key]*corev1.Secret // by the key of their cluster
	unsynced int                              // lists that are needed before clusters are sent

	reader   *files.Reader
	notifier *files.Notifier // nil unless kubeconfigs may name files
}

// state is the state of an object.
type state struct {
	object client.Object
	ready  bool // and not asked again
	gone   bool // the control plane is
	logged bool // that it is not ready

	sent    bool
	profile *inventory.Profile  // of Options.GetSecret, or nil
	found   kubeconfigs.Cluster // without Options.GetSecret
}

func (r *run) loop(ctx context.Context, w *watcher) error {
	var changed <-chan struct{}
	if r.options.GetSecret == nil && (r.options.Kubeconfig.AllowPaths || r.options.Kubeconfig.Trusted) {
		r.notifier = files.NewNotifier(log.FromContext(ctx))
		defer r.notifier.Close()
		changed = r.notifier.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-w.events:
			r.handle(ctx, e)
		case <-r.again:
			for key := range r.takeAsked() {
				r.evaluate(ctx, key)
				r.recheck(key)
			}
		case <-changed:
			r.readFiles(ctx)
		}
	}
}

// change is an object or a Secret that was put or removed, or the end of a first list.
type change struct {
	key           inventory.Key // of the cluster
	before, after client.Object // before is nil if it is new
	secret        *corev1.Secret
	isSecret      bool
	synced        bool
}

func (r *run) handle(ctx context.Context, c change) {
	switch {
	case c.synced && c.isSecret && r.options.GetSecret != nil:
		return
	case c.synced:
		if r.unsynced--; r.unsynced == 0 {
			for key := range r.clusters {
				r.evaluate(ctx, key)
			}
			r.sink.Synced()
		}
		return
	case !c.isSecret:
		if !r.take(ctx, c) {
			return
		}
	case c.secret == nil:
		delete(r.secrets, c.key)
	default:
		r.secrets[c.key] = c.secret
	}
	r.evaluate(ctx, c.key)
}

// take takes over an object and returns false if the change does not count.
func (r *run) take(ctx context.Context, c change) bool {
	known := r.clusters[c.key]
	switch {
	case c.after == nil:
	case !r.management.Load().kinds.fits(c.after):
		log.FromContext(ctx).Error(nil, "Cannot decode the object, ignoring it", "object", c.key, "kind", c.after.GetObjectKind().GroupVersionKind())
		return false
	case r.passes(c.before, c.after):
		if known == nil || known.object.GetUID() != c.after.GetUID() {
			r.remove(c.key)
			known = &state{}
			r.clusters[c.key] = known
		}
		known.object = c.after
		r.set(c.key, c.after)
		return true
	case c.before != nil && r.passes(nil, c.after):
		return false
	}
	delete(r.clusters, c.key)
	r.set(c.key, nil)
	r.remove(c.key)
	return false
}

// passes reports whether an event passes all predicates. Without an object before it is a
// creation.
func (r *run) passes(before, after client.Object) bool {
	for _, p := range r.options.Predicates {
		if before == nil && !p.Create(event.CreateEvent{Object: after}) ||
			before != nil && !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			return false
		}
	}
	return true
}

// evaluate sends a cluster, or removes it.
func (r *run) evaluate(ctx context.Context, key inventory.Key) {
	c := r.clusters[key]
	if c == nil || r.unsynced > 0 {
		return
	}
	facts := factsOf(c.object)
	if facts.gone || c.object.GetDeletionTimestamp() != nil && r.options.GetSecret == nil && r.secrets[key] == nil {
		if !c.gone {
			log.FromContext(ctx).Info("The control plane of the cluster was deleted, disengaging the cluster", "cluster", name(c.object))
		}
		c.gone = true
	}
	if c.gone {
		c.sent = false
		r.remove(key)
		return
	}
	if !c.ready {
		if c.ready = r.isReady(ctx, c.object, facts); !c.ready {
			if !c.logged {
				log.FromContext(ctx).Info("The cluster is not ready, not connecting it yet", "cluster", name(c.object))
				c.logged = true
			}
			return
		}
	}
	r.send(ctx, key, c, facts)
}

func (r *run) isReady(ctx context.Context, object client.Object, facts facts) bool {
	if r.options.IsReady != nil {
		return r.options.IsReady(ctx, object.DeepCopyObject().(client.Object))
	}
	return facts.initialized
}

// name returns the name of the cluster of an object.
func name(object client.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}

// remove removes a cluster from the fleet.
func (r *run) remove(key inventory.Key) { r.store.Remove(r.sink, key) }

// send sends a cluster that should be connected.
func (r *run) send(ctx context.Context, key inventory.Key, c *state, facts facts) {
	synthetic := inventory.Synthetic{
		ClusterName: name(c.object), Manager: managerName, Namespace: key.Namespace, Name: key.Name,
		Labels: c.object.GetLabels(), KubernetesVersion: facts.version, Conditions: facts.conditions,
	}
	var err error
	if r.options.GetSecret != nil {
		err = r.sendCustom(key, c, synthetic)
	} else {
		c.found = r.cluster(key, synthetic)
		if r.notifier != nil {
			r.scan()
		}
		err = r.put(c)
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot describe the cluster, ignoring the change", "cluster", name(c.object))
	}
}

// put sends a cluster unless one of its files may be incomplete: then readFiles does.
func (r *run) put(c *state) error {
	if c.found.Context != nil && r.reader.Pending(c.found.Context.Files()...) {
		return nil
	}
	c.sent = true
	return r.store.Put(r.sink, c.found, r.reader.Read, r.recheck)
}

// sendCustom sends a cluster whose kubeconfig Options.GetSecret returns.
func (r *run) sendCustom(key inventory.Key, c *state, synthetic inventory.Synthetic) error {
	synthetic.Previous = c.profile
	synthetic.Conditions = append(slices.Clone(synthetic.Conditions),
		metav1.Condition{Type: inventory.ConditionJoined, Status: metav1.ConditionTrue, Reason: "Ready"})
	profile, err := inventory.Synthesize(synthetic)
	if err != nil {
		return err
	}
	c.profile = profile
	r.sink.Put(profile)
	if c.sent {
		r.recheck(key)
	}
	c.sent = true
	return nil
}

// cluster returns a cluster with the kubeconfig of its Secret.
func (r *run) cluster(key inventory.Key, synthetic inventory.Synthetic) kubeconfigs.Cluster {
	secret := client.ObjectKey{Namespace: key.Namespace, Name: key.Name + secretSuffix}
	c := kubeconfigs.Cluster{
		Profile: synthetic, AccessProvider: accessProvider,
		Reference: map[string]string{"namespace": secret.Namespace, "name": secret.Name, "key": secretKey},
	}
	found, origin := r.secrets[key], "Secret "+secret.String()
	switch {
	case found == nil:
		c.Err = fmt.Errorf("%s: does not exist, or has no label %s", origin, clusterNameLabel)
	case found.Data[secretKey] == nil:
		c.Err = fmt.Errorf("%s: has no key %q", origin, secretKey)
	default:
		c.Context, c.Err = currentContext(origin, found.Data[secretKey])
	}
	return c
}

// scan reads the files that kubeconfigs name, and watches them.
func (r *run) scan() {
	var paths []string
	for _, c := range r.clusters {
		if c.found.Context != nil {
			paths = append(paths, c.found.Context.Files()...)
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
	for _, c := range r.clusters {
		if c.gone || c.found.Context == nil || len(c.found.Context.Files()) == 0 {
			continue
		}
		if err := r.put(c); err != nil {
			log.FromContext(ctx).Error(err, "Cannot describe the cluster, ignoring the change", "cluster", name(c.object))
		}
	}
}
