// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/cluster-inventory-api/client/clientset/versioned"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Options say which profiles of the hub are read.
type Options struct {
	// Namespace is the one namespace that is read. Defaults to all.
	Namespace string

	// LabelSelector is evaluated by the hub's API server: profiles that do not
	// match never reach this process. Defaults to everything.
	LabelSelector labels.Selector

	// HTTPClient is used in place of one made from the rest.Config, so that
	// connections to the hub can be shared. Defaults to a client of its own.
	HTTPClient *http.Client
}

// Source reads the ClusterProfiles of a hub.
type Source struct {
	client  versioned.Interface
	options Options
}

var _ inventory.Source = &Source{}

// New returns a source that reads the hub which the config leads to. It does
// not connect: Run does.
func New(config *rest.Config, options Options) (*Source, error) {
	if config == nil {
		return nil, fmt.Errorf("hub source: must specify a rest.Config of the hub")
	}
	var (
		client versioned.Interface
		err    error
	)
	if options.HTTPClient != nil {
		client, err = versioned.NewForConfigAndClient(config, options.HTTPClient)
	} else {
		client, err = versioned.NewForConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("hub source: %w", err)
	}
	return &Source{client: client, options: options}, nil
}

// String names the source for logs.
func (s *Source) String() string {
	if s.options.Namespace == "" {
		return "ClusterProfiles of the hub"
	}
	return fmt.Sprintf("ClusterProfiles of the hub in namespace %q", s.options.Namespace)
}

// Run implements inventory.Source. It fails only when it cannot be set up; a
// hub that does not answer is waited for, with the backoff of client-go's
// reflector (0.8 s to 30 s, with jitter).
func (s *Source) Run(ctx context.Context, sink inventory.Sink) error {
	outage := &outage{}
	informer := cache.NewSharedIndexInformer(s.listerWatcher(outage), &inventory.Profile{}, 0, cache.Indexers{})
	if err := informer.SetTransform(ctrlcache.TransformStripManagedFields()); err != nil {
		return fmt.Errorf("hub source: %w", err)
	}
	// The outage tells of failures; client-go would do so with every retry.
	silent := func(context.Context, *cache.Reflector, error) {}
	if err := informer.SetWatchErrorHandlerWithContext(silent); err != nil {
		return fmt.Errorf("hub source: %w", err)
	}

	serial := &serialSink{sink: sink}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    serial.put,
		UpdateFunc: func(_, obj any) { serial.put(obj) },
		DeleteFunc: serial.remove,
	})
	if err != nil {
		return fmt.Errorf("hub source: %w", err)
	}

	var wg sync.WaitGroup
	wg.Go(func() { informer.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		serial.synced()
	}
	wg.Wait()
	return nil
}

func (s *Source) listerWatcher(outage *outage) cache.ListerWatcher {
	profiles := s.client.ApisV1alpha1().ClusterProfiles(s.options.Namespace)
	selector := ""
	if s.options.LabelSelector != nil {
		selector = s.options.LabelSelector.String()
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			list, err := profiles.List(ctx, options)
			outage.note(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			w, err := profiles.Watch(ctx, options)
			outage.note(ctx, err)
			return w, err
		},
	}, s.client)
}

// serialSink lets the informer's goroutine and the one that waits for the
// first listing share a sink, which hears of one thing at a time.
type serialSink struct {
	mu   sync.Mutex // held during calls of sink, which return at once
	sink inventory.Sink
}

func (s *serialSink) put(obj any) {
	profile, ok := obj.(*inventory.Profile)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink.Put(profile)
}

func (s *serialSink) remove(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	profile, ok := obj.(*inventory.Profile)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink.Remove(inventory.KeyOf(profile))
}

func (s *serialSink) synced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink.Synced()
}

// outage logs what keeps the hub from being read once, not with every retry,
// and when that is over.
type outage struct {
	mu     sync.Mutex // guards reason
	reason string
}

// note is told of the outcome of each request to the hub.
func (o *outage) note(ctx context.Context, err error) {
	reason := ""
	switch {
	case err == nil, ctx.Err() != nil:
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return // the hub answers: it asks for another listing
	case apierrors.IsNotFound(err):
		reason = "the hub does not serve ClusterProfiles (is the CRD of KEP-4322 installed?)"
	case apierrors.IsForbidden(err):
		reason = "not allowed to list and watch ClusterProfiles in the hub"
	case apierrors.IsUnauthorized(err):
		reason = "the hub does not accept the credentials"
	default:
		reason = "the hub cannot be read"
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	previous := o.reason
	o.reason = reason
	log := log.FromContext(ctx)
	switch {
	case reason == "" && previous != "" && ctx.Err() == nil:
		log.Info("The hub can be read again")
	case reason != "" && reason != previous:
		log.Info("Waiting for the hub; the fleet stays as it is", "reason", reason, "error", err.Error())
	case reason != "":
		log.V(1).Info("Still waiting for the hub", "reason", reason, "error", err.Error())
	}
}
