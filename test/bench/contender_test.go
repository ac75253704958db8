// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

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
// Each event of a ConfigMap in the others leads to a call of reconcile.
type contestant func(tb testing.TB, home *mctest.Cluster, reconcile func(object)) contender

// object is a ConfigMap in a cluster.
type object struct {
	cluster, name string
}
