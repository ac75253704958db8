// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// target is what requests are for.
type target struct {
	resource  string
	namespace string // "" means all
	kep       string // that defines the resource
}

func (t target) String() string {
	if t.namespace == "" {
		return t.resource
	}
	return fmt.Sprintf("%s in namespace %q", t.resource, t.namespace)
}

// outages logs what keeps the hub from being read once for each reason, not
// with every retry and target, and when that is over.
type outages struct {
	mu      sync.Mutex // guards reasons
	reasons map[target]string
}

func newOutages() *outages {
	return &outages{reasons: map[target]string{}}
}

// note is told of the outcome of each request to the hub.
func (o *outages) note(ctx context.Context, what target, err error) {
	reason := ""
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return // the hub answers: it asks for another listing
	case apierrors.IsNotFound(err):
		reason = fmt.Sprintf("the hub does not serve %s (is the CRD of %s installed?)", what.resource, what.kep)
	case apierrors.IsForbidden(err):
		reason = fmt.Sprintf("not allowed to list and watch %s in the hub", what)
		if what.namespace == "" {
			reason = fmt.Sprintf("not allowed to list and watch %s in all namespaces of the hub; where there are rights in some, name these in the options", what)
		}
	case apierrors.IsUnauthorized(err):
		reason = "the hub does not accept the credentials"
	default:
		reason = "the hub cannot be read"
	}
	log := log.FromContext(ctx)
	switch o.change(what, reason) {
	case begun:
		log.Info("Waiting for the hub; the fleet stays as it is", "reason", reason, "error", err.Error())
	case continued:
		log.V(1).Info("Still waiting for the hub", "reason", reason, "error", err.Error())
	case ended:
		log.Info("The hub can be read again")
	case none:
	}
}

// change is what a request's outcome means for what is known of outages.
type change int

const (
	none change = iota
	begun
	continued
	ended
)

func (o *outages) change(what target, reason string) change {
	o.mu.Lock()
	defer o.mu.Unlock()
	if reason == "" {
		if o.reasons[what] == "" {
			return none
		}
		delete(o.reasons, what)
		if len(o.reasons) > 0 {
			return none
		}
		return ended
	}
	for _, known := range o.reasons {
		if known == reason {
			o.reasons[what] = reason
			return continued
		}
	}
	o.reasons[what] = reason
	return begun
}
