// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// outage logs each reason why objects cannot be read once, and the end. It is used from
// one goroutine.
type outage struct {
	resource, namespace string
	reason              string // "" while they can be read
}

func (o *outage) observe(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // the management cluster responds, and requires a new list
	}
	reason := ""
	switch {
	case err == nil:
	case apierrors.IsForbidden(err):
		reason = "not allowed to list and watch them"
	case apierrors.IsUnauthorized(err):
		reason = "the management cluster does not accept the credentials"
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		reason = "the management cluster does not serve the API: its CustomResourceDefinition may be missing"
	default:
		reason = "requests to the management cluster fail"
	}
	logger := log.FromContext(ctx).WithValues("resource", o.resource, "namespace", o.namespace)
	switch reason {
	case o.reason:
	case "":
		logger.Info("Objects of the management cluster can be read again")
	default:
		logger.Info("Cannot read objects of the management cluster, keeping the clusters as they are", "reason", reason, "error", err.Error())
	}
	o.reason = reason
}
