// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/providers/internal/informer"
)

// clusterNameLabel is on all Secrets of a cluster.
const clusterNameLabel = clusterv1.ClusterNameLabel

// watcher watches the objects and the Secrets of one run.
type watcher struct {
	events chan change
	wait   func()
}

// watch watches until the context ends; then wait returns when nothing of it runs.
func (s *source) watch(ctx context.Context) (_ *watcher, err error) {
	m := s.management.Load()
	config, httpClient, closeIdle, err := informer.Client(m.config)
	if err != nil {
		return nil, err
	}
	objectAPIs, err := apis(config, httpClient, m.order, s.options.Namespace)
	if err != nil {
		return nil, err
	}
	secretAPI, err := informer.Secrets(config, httpClient, s.options.Namespace)
	if err != nil {
		return nil, err
	}
	managementClient, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: m.scheme})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.client = managementClient
	s.mu.Unlock()

	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{events: make(chan change)}
	waitObjects, err := informer.Start(ctx, informer.Options{
		Resource: strings.ToLower(m.order[0].Kind), Namespace: s.options.Namespace, APIs: objectAPIs,
		Type: &unstructured.Unstructured{}, Transform: m.kinds.decode, Handler: w.objects(ctx),
		Synced: func() { w.send(ctx, change{synced: true}) },
	})
	if err != nil {
		cancel()
		return nil, err
	}
	waitSecrets, err := informer.Start(ctx, informer.Options{
		Resource: "secrets", Namespace: s.options.Namespace, LabelSelector: clusterNameLabel, APIs: []informer.API{secretAPI},
		Type: &corev1.Secret{}, Transform: s.keep, Handler: w.secrets(ctx, s.clusterOf),
		Synced: func() { w.send(ctx, change{isSecret: true, synced: true}) },
	})
	w.wait = func() {
		cancel()
		waitObjects()
		if waitSecrets != nil {
			waitSecrets()
		}
		closeIdle()
	}
	if err != nil {
		w.wait()
		return nil, err
	}
	return w, nil
}

// keep reduces a Secret to what is read of it: nothing of those with private keys.
func (s *source) keep(object any) (any, error) {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return object, nil
	}
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
		Labels: map[string]string{clusterNameLabel: secret.Labels[clusterNameLabel]},
	}}
	if data, ok := secret.Data[secretKey]; ok && s.options.GetSecret == nil && strings.HasSuffix(secret.Name, secretSuffix) {
		kept.Data = map[string][]byte{secretKey: data}
	}
	return kept, nil
}

// clusterOf returns the key of the cluster whose kubeconfig a Secret may have, if any.
func (s *source) clusterOf(secret *corev1.Secret) (key inventory.Key, ok bool) {
	if s.options.GetSecret != nil { // it may read any Secret
		return keyOf(secret.Namespace, secret.Labels[clusterNameLabel]), true
	}
	cluster, ok := strings.CutSuffix(secret.Name, secretSuffix)
	return keyOf(secret.Namespace, cluster), ok
}

// send returns when the change was received or the context has ended.
func (w *watcher) send(ctx context.Context, c change) {
	select {
	case w.events <- c:
	case <-ctx.Done():
	}
}

// objects sends the objects of an informer.
func (w *watcher) objects(ctx context.Context) cache.ResourceEventHandler {
	put := func(before, after any) {
		object := after.(client.Object)
		c := change{key: keyOf(object.GetNamespace(), object.GetName()), after: object}
		c.before, _ = before.(client.Object)
		w.send(ctx, c)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { put(nil, object) },
		UpdateFunc: put,
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
				w.send(ctx, change{key: keyOf(key.Namespace, key.Name)})
			}
		},
	}
}

// secrets sends the Secrets of an informer.
func (w *watcher) secrets(ctx context.Context, clusterOf func(*corev1.Secret) (inventory.Key, bool)) cache.ResourceEventHandler {
	send := func(secret *corev1.Secret, removed bool) {
		if key, ok := clusterOf(secret); ok {
			c := change{key: key, isSecret: true}
			if !removed {
				c.secret = secret
			}
			w.send(ctx, c)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { send(object.(*corev1.Secret), false) },
		UpdateFunc: func(_, object any) { send(object.(*corev1.Secret), false) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if secret, ok := object.(*corev1.Secret); ok {
				send(secret, true)
			}
		},
	}
}
