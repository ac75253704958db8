// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
)

// lister lists and watches objects in the first version that is served. As an API server
// ends the watches of a resource when its versions change, each list, and each watch that
// follows one that was cut, looks for that version. It is used from one goroutine.
type lister struct {
	options *Options
	outage  *outage

	current int // API of the last list, also of one object
	listed  int // API of the last complete list, whose objects are in the informer

	started time.Time // of the last watch, zero if there was none
	timeout time.Duration
}

func (l *lister) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := l.first(ctx, options)
	l.outage.observe(ctx, err)
	if err == nil && options.Continue == "" {
		l.listed = l.current
	}
	return list, err
}

// first lists in the first version that is served.
func (l *lister) first(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
	options.LabelSelector = l.options.LabelSelector
	for i, api := range l.options.APIs {
		list, err = api.List(ctx, options)
		if err == nil {
			l.current = i
		}
		if !apierrors.IsNotFound(err) {
			return list, err
		}
	}
	return list, err
}

func (l *lister) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := l.resume(ctx, options)
	l.outage.observe(ctx, err)
	return w, err
}

// resume watches in the version of the objects in the informer. If that is not served, or
// a preferred one is, the error is that the objects must be listed again.
func (l *lister) resume(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := l.checkRestored(ctx, options); err != nil {
		return nil, err
	}
	options.LabelSelector, options.Watch = l.options.LabelSelector, true
	if options.SendInitialEvents != nil && *options.SendInitialEvents { // a list
		return l.watchFirst(ctx, options)
	}
	if l.current == l.listed {
		w, err := startWatch(ctx, options, l.options.APIs[l.listed])
		if !apierrors.IsNotFound(err) {
			return w, err
		}
	}
	return nil, apierrors.NewResourceExpired("the management cluster serves another version of the API")
}

// watchFirst lists by a watch in the first version that is served.
func (l *lister) watchFirst(ctx context.Context, options metav1.ListOptions) (w watch.Interface, err error) {
	for i, api := range l.options.APIs {
		w, err = startWatch(ctx, options, api)
		if err == nil {
			l.current, l.listed = i, i
		}
		if !apierrors.IsNotFound(err) {
			return w, err
		}
	}
	return w, err
}

// startWatch starts a watch that ends when it is stopped, not with the context: Stop
// returns after the connection is released, the end of a context before.
func startWatch(ctx context.Context, options metav1.ListOptions, api API) (watch.Interface, error) {
	requestCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, cancel)
	w, err := api.Watch(requestCtx, options)
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
		list, err := l.first(ctx, metav1.ListOptions{Limit: 1})
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
