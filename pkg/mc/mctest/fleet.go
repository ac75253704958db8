// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest

import (
	"fmt"
	"slices"
	"testing"
)

// Fleet is a number of clusters that share types and discovery documents, so that
// many of them fit into one process.
type Fleet struct {
	clusters []*Cluster
}

// NewFleet starts n clusters, named cluster-0, cluster-1 and so on, which are
// closed when the test ends. It ends the test if one cannot start. It takes at
// most one Options.
func NewFleet(tb testing.TB, n int, options ...Options) *Fleet {
	tb.Helper()
	o := only(tb, options)
	types := o.types()
	f := &Fleet{clusters: make([]*Cluster, n)}
	for i := range f.clusters {
		f.clusters[i] = start(tb, fmt.Sprintf("%s-%d", o.name(), i), o, types)
	}
	return f
}

// Len returns the number of clusters.
func (f *Fleet) Len() int { return len(f.clusters) }

// Cluster returns the i-th cluster. It panics if there is none.
func (f *Fleet) Cluster(i int) *Cluster { return f.clusters[i] }

// Clusters returns all clusters in order.
func (f *Fleet) Clusters() []*Cluster { return slices.Clone(f.clusters) }
