// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// watch watches the Secrets with the label until the context ends; then wait returns
// when nothing of it runs. A management cluster that does not respond is retried with the
// backoff of client-go's reflector (0.8 s to 30 s, with jitter).
func (s *source) watch(ctx context.Context) (*watcher, error) {
	config := rest.CopyConfig(s.hub.Load())
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	if config.QPS == 0 {
		config.QPS = -1
	}
	var connections http.RoundTripper // below the wrappers
	config.WrapTransport = transport.Wrappers(func(rt http.RoundTripper) http.RoundTripper {
		connections = rt
		return rt
	}, config.WrapTransport)
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	l := &lister{
		client: client, namespace: s.options.Namespace, outage: &outage{namespace: s.options.Namespace},
		selector: labels.SelectorFromSet(labels.Set{s.options.KubeconfigSecretLabel: "true"}).String(),
	}
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: l.list, WatchFuncWithContext: l.watch,
	}, client), &corev1.Secret{}, 0, cache.Indexers{})
	key := s.options.KubeconfigSecretKey
	if err := informer.SetTransform(func(object any) (any, error) { return keep(object, key), nil }); err != nil {
		return nil, err
	}
	// outage logs failures; client-go would log each retry.
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return nil, err
	}
	w := &watcher{events: make(chan event)}
	registration, err := informer.AddEventHandler(w.handler(ctx))
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() {
		select {
		case <-registration.HasSyncedChecker().Done():
			w.send(ctx, event{synced: true})
		case <-ctx.Done():
		}
	})
	w.wait = func() {
		running.Wait()
		utilnet.CloseIdleConnectionsFor(connections)
	}
	return w, nil
}

// keep reduces a Secret to what is read of it.
func keep(object any, key string) any {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return object
	}
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion, Labels: secret.Labels,
	}}
	if data, ok := secret.Data[key]; ok {
		kept.Data = map[string][]byte{key: data}
	}
	return kept
}

// lister lists and watches the Secrets. It is used from one goroutine.
type lister struct {
	client              rest.Interface
	namespace, selector string
	outage              *outage

	started time.Time // of the last watch, zero if there was none
	timeout time.Duration
}

func (l *lister) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := l.get(ctx, options)
	l.outage.observe(ctx, err)
	return list, err
}

func (l *lister) get(ctx context.Context, options metav1.ListOptions) (*corev1.SecretList, error) {
	options.LabelSelector = l.selector
	list := &corev1.SecretList{}
	err := l.client.Get().Namespace(l.namespace).Resource("secrets").VersionedParams(&options, scheme.ParameterCodec).Do(ctx).Into(list)
	return list, err
}

func (l *lister) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	err := l.checkRestored(ctx, options)
	if apierrors.IsResourceExpired(err) {
		return nil, err
	}
	var w watch.Interface
	if err == nil {
		options.LabelSelector, options.Watch = l.selector, true
		w, err = l.startWatch(ctx, options)
	}
	l.outage.observe(ctx, err)
	return w, err
}

// startWatch starts a watch that ends when it is stopped, not with the context: Stop
// returns after the connection is released, the end of a context before.
func (l *lister) startWatch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	requestCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, cancel)
	w, err := l.client.Get().Namespace(l.namespace).Resource("secrets").VersionedParams(&options, scheme.ParameterCodec).Watch(requestCtx)
	if !release() || err != nil {
		cancel()
		return w, err
	}
	return &detachedWatch{Interface: w, cancel: cancel}, nil
}

// detachedWatch is a watch with a request that outlives its context.
type detachedWatch struct {
	watch.Interface
	cancel context.CancelFunc // of the request
}

// Stop implements watch.Interface.
func (w *detachedWatch) Stop() {
	w.Interface.Stop()
	w.cancel()
}

// watchTolerance is how long before its timeout a watch may end by itself.
const watchTolerance = 5 * time.Second

// checkRestored asks for the resource version of the management cluster if the last watch
// was cut. If that is earlier than that of the informer, the cluster was restored from a
// backup: a watch would not show what was lost. The error is that all must be listed.
func (l *lister) checkRestored(ctx context.Context, options metav1.ListOptions) error {
	cut := !l.started.IsZero() && (l.timeout == 0 || time.Since(l.started) < l.timeout-watchTolerance)
	if cut && options.ResourceVersion != "" && options.ResourceVersion != "0" {
		list, err := l.get(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		current, err := meta.ListAccessor(list)
		if err != nil {
			return err
		}
		order, err := resourceversion.CompareResourceVersion(current.GetResourceVersion(), options.ResourceVersion)
		if err == nil && order < 0 {
			return apierrors.NewResourceExpired("the management cluster was restored to an earlier state")
		}
	}
	l.started, l.timeout = time.Now(), 0
	if options.TimeoutSeconds != nil {
		l.timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	return nil
}

// outage logs each reason why the Secrets cannot be read once, and the end. It is used
// from one goroutine.
type outage struct {
	namespace string
	reason    string // "" while they can be read
}

func (o *outage) observe(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // the management cluster responds, and requires a new list
	}
	reason := ""
	switch {
	case err == nil:
	case apierrors.IsForbidden(err):
		reason = fmt.Sprintf("not allowed to list and watch Secrets in namespace %q", o.namespace)
	case apierrors.IsUnauthorized(err):
		reason = "the management cluster does not accept the credentials"
	default:
		reason = "requests to the management cluster fail"
	}
	switch reason {
	case o.reason:
	case "":
		log.FromContext(ctx).Info("Secrets can be read again")
	default:
		log.FromContext(ctx).Info("Cannot read the Secrets with kubeconfigs, keeping the clusters as they are", "reason", reason, "error", err.Error())
	}
	o.reason = reason
}
