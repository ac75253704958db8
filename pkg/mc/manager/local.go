// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/fieldindex"
)

// localManager is the manager of a local cluster that need not serve the kinds that
// are indexed.
type localManager struct {
	manager.Manager
	indexed cluster.Cluster
}

func newLocalManager(mgr manager.Manager) *localManager {
	return &localManager{Manager: mgr, indexed: fieldindex.New(mgr, "the local cluster", &fieldindex.Set{})}
}

func (m *localManager) GetCache() cache.Cache                { return m.indexed.GetCache() }
func (m *localManager) GetClient() client.Client             { return m.indexed.GetClient() }
func (m *localManager) GetFieldIndexer() client.FieldIndexer { return m.indexed.GetFieldIndexer() }
