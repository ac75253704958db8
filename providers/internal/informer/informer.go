// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer watches the objects of a management cluster for providers.
package informer

import (
	"context"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"
)

// API reads a resource in one version.
type API struct {
	List  func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Options configure an informer.
type Options struct {
	// Resource names the objects in log lines, such as "secrets".
	Resource string
	// Namespace of the objects, "" for all.
	Namespace string
	// LabelSelector selects the objects. Defaults to all.
	LabelSelector string
	// APIs reads the objects. The first version that is served is read.
	APIs []API
	// Type is an object of the type that is read.
	Type runtime.Object
	// Transform changes objects before they are kept.
	Transform cache.TransformFunc
	// Handler gets the objects, from one goroutine.
	Handler cache.ResourceEventHandler
	// Synced is called after the objects of the first list were handled.
	Synced func()
}

// Start watches objects until the context ends; then wait returns when nothing of it
// runs. A management cluster that does not respond is retried with the backoff of
// client-go's reflector (0.8 s to 30 s, with jitter).
func Start(ctx context.Context, options Options) (wait func(), err error) {
	l := &lister{options: &options, outage: &outage{resource: options.Resource, namespace: options.Namespace}}
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}, options.Type, 0, cache.Indexers{})
	if err := informer.SetTransform(options.Transform); err != nil {
		return nil, err
	}
	// outage logs failures; client-go would log each retry.
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(options.Handler)
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() {
		select {
		case <-registration.HasSyncedChecker().Done():
			options.Synced()
		case <-ctx.Done():
		}
	})
	return running.Wait, nil
}

// Client returns the config for the requests of informers, without a limit unless it has
// one, a client for it, and a function that closes the client's idle connections.
func Client(config *rest.Config) (_ *rest.Config, client *http.Client, closeIdle func(), err error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS = -1
	}
	var connections http.RoundTripper // below the wrappers
	observed := rest.CopyConfig(config)
	observed.WrapTransport = transport.Wrappers(func(rt http.RoundTripper) http.RoundTripper {
		connections = rt
		return rt
	}, config.WrapTransport)
	client, err = rest.HTTPClientFor(observed)
	if err != nil {
		return nil, nil, nil, err
	}
	return config, client, func() { utilnet.CloseIdleConnectionsFor(connections) }, nil
}
