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

// discoverWithin is how long discovery may take before it counts as what keeps
// a kind from being synced.
const discoverWithin = 3 * time.Second

// examineBackoff returns the times before each look at why a kind is not synced.
// The first comes soon: a source whose kind is forbidden holds a startup slot.
func examineBackoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 10, Cap: time.Minute}
}

var errNoKinds = errors.New("the API server has not answered which kinds it has")

// Diagnose implements DiagnosedSource. A kind that the cluster does not have is
// reported as soon as that is known. An informer does not tell why it cannot
// list: where it has not synced after half a second, the API server is asked for
// one object of the kind.
func (k *clusterKind[request]) Diagnose(ctx context.Context, report func(error)) {
	backoff, began := examineBackoff(), time.Now()
	timer := time.NewTimer(backoff.Step())
	defer timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-k.informers.answered:
			_, err = k.informers.answer()
		case <-timer.C:
			err = k.examine(ctx)
			if errors.Is(err, errNoKinds) && time.Since(began) < discoverWithin {
				err = nil // discovery may just be slow
			}
			timer.Reset(backoff.Step())
		}
		if err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}

// examine returns what keeps the kind from being synced, nil if nothing does.
func (k *clusterKind[request]) examine(ctx context.Context) error {
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
func listOne(ctx context.Context, cl cluster.Cluster, of client.Object) error {
	scheme, reader := partOf(cl.GetScheme), partOf(cl.GetAPIReader)
	if scheme == nil || reader == nil {
		return nil
	}
	kind, err := apiutil.GVKForObject(of, scheme)
	if err != nil {
		return err
	}
	kind.Kind += "List"
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	return reader.List(ctx, list, client.Limit(1))
}
