// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// workers is how many reconciles run at a time.
const workers = 10

// contender runs one controller of ConfigMaps over clusters that come and go.
// Clusters may join and leave at the same time.
type contender interface {
	// join adds a cluster, without waiting for it.
	join(*mctest.Cluster)
	// leave takes a cluster away.
	leave(*mctest.Cluster)
	// stop returns when nothing of the controller runs any more.
	stop()
}

// contestant starts a contender, whose home is a cluster that is not reconciled.
// Each event of a ConfigMap in the others leads to a reconcile.
type contestant func(tb testing.TB, home *mctest.Cluster, o observer) contender

// observer is told of what a contender does. It is called from any goroutine.
type observer struct {
	reconcile func(object)
	// delivered, if any, is told the name of an event's object, in whatever
	// cluster that is, as soon as the cache knows of it.
	delivered func(name string)
}

// filter tells of what is delivered, and lets it pass.
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
