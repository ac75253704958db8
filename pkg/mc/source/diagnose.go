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

const (
	// listTimeout is the timeout of the test request to the API server.
	listTimeout = 10 * time.Second

	// discoveryTimeout is the time after which slow discovery is reported.
	discoveryTimeout = 3 * time.Second
)

// checkBackoff returns the delays before each check. The first one is short: a
// source whose kind is forbidden may hold a startup slot.
func checkBackoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 10, Cap: time.Minute}
}

var errNoDiscovery = errors.New("the API server does not answer discovery requests")

// Diagnose implements sources.Diagnosed. It reports errors of the informer lookup
// at once, such as a missing kind, and those of lists if the informer is a
// sources.ListErrorReporter. Others do not return the errors of their list requests.
// So while the source has not synced, Diagnose periodically lists one object of the
// kind itself.
func (k *clusterKind[request]) Diagnose(ctx context.Context, report func(error)) {
	backoff, start := checkBackoff(), time.Now()
	timer := time.NewTimer(backoff.Step())
	defer timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-k.informers.answered:
			err = k.informers.takeFailure()
		case <-timer.C:
			err = k.check(ctx)
			if errors.Is(err, errNoDiscovery) && time.Since(start) < discoveryTimeout {
				err = nil // discovery may only be slow
			}
			timer.Reset(backoff.Step())
		}
		if err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}

// check returns the reason why the kind cannot sync, or nil if there is none.
func (k *clusterKind[request]) check(ctx context.Context) error {
	found, err := k.informers.answer()
	switch {
	case err != nil:
		return err
	case !found:
		return errNoDiscovery
	}
	// Discovery is done, so this request ends with the context.
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	err = listOne(ctx, k.cluster, k.object)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the API server has not answered a list request within %v", listTimeout)
	default:
		return cannotList(err)
	}
}

func cannotList(err error) error {
	return fmt.Errorf("cannot list objects in all namespaces: %w", err)
}

// listOne lists one object of the kind, metadata only.
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
