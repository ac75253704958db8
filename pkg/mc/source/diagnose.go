// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// answerWithin is how long an API server has to say why a kind is not synced.
const answerWithin = 10 * time.Second

// looks returns the times between looks at why a kind is not synced.
func looks() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Second, Factor: 2, Jitter: 0.2, Steps: 10, Cap: time.Minute}
}

var errNoKinds = errors.New("the API server has not answered which kinds it has")

// Diagnose implements DiagnosedSource. A kind that the cluster does not have is
// reported as soon as that is known. An informer does not tell why it cannot
// list: where it has not synced after some seconds, the API server is asked for
// one object of the kind.
func (k *clusterKind[request]) Diagnose(ctx context.Context, report func(error)) {
	backoff := looks()
	timer := time.NewTimer(backoff.Step())
	defer timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-k.informers.asked:
			_, err = k.informers.answer()
		case <-timer.C:
			err = k.look(ctx)
			timer.Reset(backoff.Step())
		}
		if err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}

// look returns what keeps the kind from being synced, nil if nothing does.
func (k *clusterKind[request]) look(ctx context.Context) error {
	found, err := k.informers.answer()
	switch {
	case err != nil:
		return err
	case !found:
		return errNoKinds
	}
	// The API server has said where the kind is served, so this asks it nothing
	// that the context cannot end.
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err = listOne(ctx, k.cluster, k.object)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the API server has not answered within %v", answerWithin)
	default:
		return fmt.Errorf("cannot be listed in all namespaces: %w", err)
	}
}

// listOne reads the metadata of one object from the API server.
func listOne(ctx context.Context, cl cluster.Cluster, of client.Object) (err error) {
	// A cluster of a test may have nothing but a cache.
	defer func() {
		if recover() != nil {
			err = nil
		}
	}()
	kind, err := apiutil.GVKForObject(of, cl.GetScheme())
	if err != nil {
		return err
	}
	kind.Kind += "List"
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	return cl.GetAPIReader().List(ctx, list, client.Limit(1))
}
