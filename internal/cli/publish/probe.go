// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/publish"
)

// prober probes clusters with the credentials of a method. It keeps the access to a
// cluster from one probe to the next, and with it connections and credentials.
type prober struct {
	method credentials.Method
	keep   time.Duration // an access that no probe uses

	mu       sync.Mutex // guards accesses
	accesses map[inventory.Key]*kept
}

// kept is an access that one probe at a time uses.
type kept struct {
	access      *credentials.Access
	fingerprint string // of the profile
	used        time.Time
}

func newProber(method credentials.Method, keep time.Duration) *prober {
	return &prober{method: method, keep: keep, accesses: map[inventory.Key]*kept{}}
}

// probe is a publish.ProbeFunc. After a failure, the next probe resolves the access
// again: a kubeconfig may have changed.
func (p *prober) probe(ctx context.Context, profile *inventory.Profile) (publish.ProbeResult, error) {
	k, err := p.take(ctx, profile)
	if err != nil {
		return publish.ProbeResult{}, err
	}
	config := k.access.RESTConfig()
	config.Wrap(hideCredentialErrors)
	result, err := publish.ProbeCluster(ctx, config)
	if err != nil || result.Status != metav1.ConditionTrue {
		k.access.Release()
		return result, err
	}
	p.put(inventory.KeyOf(profile), k)
	return result, nil
}

// take returns the access to the cluster, which is no longer in the map, and releases
// those that were not used.
func (p *prober) take(ctx context.Context, profile *inventory.Profile) (*kept, error) {
	key, fingerprint := inventory.KeyOf(profile), inventory.Fingerprint(profile)
	p.mu.Lock()
	k := p.accesses[key]
	delete(p.accesses, key)
	for key, other := range p.accesses {
		if time.Since(other.used) > p.keep {
			other.access.Release()
			delete(p.accesses, key)
		}
	}
	p.mu.Unlock()
	if k != nil && k.fingerprint == fingerprint {
		return k, nil
	}
	if k != nil {
		k.access.Release()
	}
	access, err := p.method.Resolve(ctx, profile)
	if err != nil {
		return nil, err
	}
	return &kept{access: access, fingerprint: fingerprint}, nil
}

func (p *prober) put(key inventory.Key, k *kept) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before := p.accesses[key]; before != nil { // of a probe that was overtaken
		before.access.Release()
	}
	k.used = time.Now()
	p.accesses[key] = k
}

// close releases all accesses. No probe may run.
func (p *prober) close() {
	for key, k := range p.accesses {
		k.access.Release()
		delete(p.accesses, key)
	}
}

// hideCredentialErrors makes errors of credentials different from those of the network,
// which a plugin can have too: the cluster was not asked.
func hideCredentialErrors(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if failed, ok := errors.AsType[*credentials.Error](err); ok {
			return nil, errors.New(failed.Error())
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
