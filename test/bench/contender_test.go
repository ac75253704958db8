// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// workers is the number of concurrent reconciles.
const workers = 10

// contender runs one controller of ConfigMaps over clusters that come and go.
// Clusters may join and leave at the same time.
type contender interface {
	// join adds a cluster, without waiting for it.
	join(member)
	// leave takes a cluster away.
	leave(member)
	// stop returns when nothing of the controller runs any more.
	stop()
}

// contestant starts a contender. Its home is a cluster that is not reconciled.
// In the others, each event of a ConfigMap causes a reconcile.
type contestant func(tb testing.TB, home member, o observer) contender

// member is a cluster: an *mctest.Cluster, or one of another process.
type member interface {
	Name() string
	Config() *rest.Config
}

// observer observes a contender. It is called from any goroutine.
type observer struct {
	reconcile func(object)
	// delivered, if set, is called with the name of an event's object as soon as
	// the cache delivers it.
	delivered func(name string)
}

// filter calls delivered, and lets all events pass.
func (o observer) filter() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		if o.delivered != nil {
			o.delivered(obj.GetName())
		}
		return true
	})
}

// object is a ConfigMap in a cluster.
type object struct {
	cluster, name string
}
