// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// approach is a way to a cluster. It must be released, which nil allows too.
type approach struct {
	server      string
	provider    string
	fingerprint string
	identity    identity
	// identify asks who is there. Nil if nobody can be asked.
	identify func(ctx context.Context, profile *inventory.Profile) (identity, error)
	leave    func()

	// The way to a cluster that is built from a rest.Config.
	config *rest.Config
	target *target
	// The cluster that a Connector gave.
	cluster cluster.Cluster
}

// equals tells whether the other way is the same.
func (a *approach) equals(other *approach) bool {
	return a.fingerprint != "" && a.fingerprint == other.fingerprint
}

func (a *approach) release() {
	if a != nil {
		a.leave()
	}
}

// approach finds the way that the attempt's profile leads and asks who is
// there. It returns nil if that is the current way and need not be asked.
func (k *keeper) approach(a *attempt, current *approach) (*approach, error) {
	way, err := k.resolve(a)
	if err != nil {
		return nil, because(ResolveFailed, explain(a, err))
	}
	if current != nil && way.equals(current) && !a.ask {
		way.release()
		return nil, nil
	}
	if current == nil {
		k.note(way)
		k.setReason(AwaitingAnswer)
	}
	if way.identify == nil {
		way.identity = identity{clusterID: inventory.ClusterID(a.profile)}
	} else if way.identity, err = way.identify(a, a.profile); err != nil {
		way.release()
		return nil, because(whyNoAnswer(err), explain(a, err))
	}
	return way, nil
}

// resolve turns the attempt's profile into a way.
func (k *keeper) resolve(a *attempt) (_ *approach, err error) {
	if k.fleet.options.Connector != nil {
		return k.connection(a)
	}
	access, err := k.fleet.options.Credentials.Resolve(a, a.profile)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			access.Release()
		}
	}()
	config := access.RESTConfig()
	beneath := noteTransport(config)
	if err := k.fleet.options.Connection.tune(config); err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := newTarget(config.Host, transport)
	if err != nil {
		return nil, err
	}
	target.beneath, target.expiry = *beneath, access.Expiry
	return &approach{
		server: shown(access.Server()), provider: access.Provider(), fingerprint: access.Fingerprint(),
		identify: target.identify, leave: access.Release,
		config: config, target: target,
	}, nil
}

// noteTransport has the first transport made from the configuration noted, as it
// is beneath the wrappers that REST options add: those need not tell what they
// wrap. Copies of the configuration may make others.
func noteTransport(config *rest.Config) *http.RoundTripper {
	var noted http.RoundTripper
	var once sync.Once
	config.Wrap(func(transport http.RoundTripper) http.RoundTripper {
		once.Do(func() { noted = transport })
		return transport
	})
	return &noted
}

// explain puts the time limit in the place of the errors that it caused.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// closeIdle closes the connections when no request needs them any more. One that
// is closed before its last request has ended stays in memory for as long as it
// could have been idle, 90 s: net/http2 then has a timer that nobody stops. A
// request ends moments after its context, which is waited for.
func (a *approach) closeIdle() {
	if a.target == nil {
		return
	}
	for pause := time.Millisecond; pause <= 4*time.Millisecond; pause *= 2 {
		closeIdleConnections(a.target.beneath)
		time.Sleep(pause)
	}
}

// closeIdleConnections closes those of the first transport that can, of a chain.
func closeIdleConnections(transport http.RoundTripper) {
	switch t := transport.(type) {
	case interface{ CloseIdleConnections() }:
		t.CloseIdleConnections()
	case utilnet.RoundTripperWrapper:
		closeIdleConnections(t.WrappedRoundTripper())
	}
}
