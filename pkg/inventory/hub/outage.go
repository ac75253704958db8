// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// target is what requests read.
type target struct {
	resource  string
	namespace string // "" means all
	kep       string // defines the resource
}

// outages logs each reason why the hub cannot be read once, not for every retry
// and target, and the end of the outage.
type outages struct {
	mu      sync.Mutex // guards reasons
	reasons map[target]string
}

// observe takes the outcome of a request.
func (o *outages) observe(ctx context.Context, what target, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // the hub responds, and requires a new list
	}
	known, ended := o.record(what, what.reason(err))
	switch log := log.FromContext(ctx); {
	case ended:
		log.Info("Hub can be read again")
	case err == nil:
	case known:
		log.V(1).Info("Still cannot read the hub", "reason", what.reason(err), "error", err.Error())
	default:
		log.Info("Cannot read the hub, keeping the clusters as they are", "reason", what.reason(err), "error", err.Error())
	}
}

// reason returns why the target cannot be read, or "".
func (t target) reason(err error) string {
	switch {
	case err == nil:
		return ""
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return fmt.Sprintf("the hub does not serve %s (is the CRD of %s installed?)", t.resource, t.kep)
	case apierrors.IsForbidden(err) && t.namespace == "":
		return fmt.Sprintf("not allowed to list and watch %s in all namespaces of the hub; to read only some, set Namespaces", t.resource)
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("not allowed to list and watch %s in namespace %q in the hub", t.resource, t.namespace)
	case apierrors.IsUnauthorized(err):
		return "the hub does not accept the credentials"
	default:
		return "requests to the hub fail"
	}
}

// record sets the reason why the target cannot be read, or "". It reports whether
// the reason was known before, also for another target, and whether this was the
// end of the outage.
func (o *outages) record(what target, reason string) (known, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known = slices.Contains(slices.Collect(maps.Values(o.reasons)), reason)
	if reason != "" {
		o.reasons[what] = reason
		return known, false
	}
	before := len(o.reasons)
	delete(o.reasons, what)
	return known, before > 0 && len(o.reasons) == 0
}
