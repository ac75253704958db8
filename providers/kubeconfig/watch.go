// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/providers/internal/informer"
)

// watcher watches the Secrets of one run.
type watcher struct {
	events chan event
	wait   func()
}

// watch watches the Secrets with the label until the context ends; then wait returns
// when nothing of it runs.
func (s *source) watch(ctx context.Context) (*watcher, error) {
	config, client, closeIdle, err := informer.Client(s.hub.Load())
	if err != nil {
		return nil, err
	}
	api, err := informer.Secrets(config, client, s.options.Namespace)
	if err != nil {
		return nil, err
	}
	w := &watcher{events: make(chan event)}
	wait, err := informer.Start(ctx, informer.Options{
		Resource: "secrets", Namespace: s.options.Namespace, APIs: []informer.API{api},
		LabelSelector: labels.SelectorFromSet(labels.Set{s.options.KubeconfigSecretLabel: "true"}).String(),
		Type:          &corev1.Secret{}, Transform: s.keep, Handler: w.handler(ctx),
		Synced: func() { w.send(ctx, event{synced: true}) },
	})
	if err != nil {
		return nil, err
	}
	w.wait = func() {
		wait()
		closeIdle()
	}
	return w, nil
}

// keep reduces a Secret to what is read of it.
func (s *source) keep(object any) (any, error) {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return object, nil
	}
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion, Labels: secret.Labels,
	}}
	key := s.options.KubeconfigSecretKey
	if data, ok := secret.Data[key]; ok {
		kept.Data = map[string][]byte{key: data}
	}
	return kept, nil
}

// send returns when the event was received or the context has ended.
func (w *watcher) send(ctx context.Context, e event) {
	select {
	case w.events <- e:
	case <-ctx.Done():
	}
}

// handler sends the Secrets of an informer.
func (w *watcher) handler(ctx context.Context) cache.ResourceEventHandler {
	put := func(object any) { w.send(ctx, event{put: object.(*corev1.Secret)}) }
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, object any) { put(object) },
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
				w.send(ctx, event{removed: inventory.Key{Namespace: key.Namespace, Name: key.Name}})
			}
		},
	}
}
