// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// NewCluster returns the cluster of a namespace for tests.
func NewCluster(namespace string, shared cluster.Cluster) (*NamespacedCluster, func()) {
	return newCluster(namespace, shared, &sharedIndexes{}, time.Minute, logr.Discard())
}
