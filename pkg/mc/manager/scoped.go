// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// scopedManager is the local manager, but for another cluster.
type scopedManager struct {
	manager.Manager
	cluster cluster.Cluster
}

func (m *scopedManager) GetHTTPClient() *http.Client          { return m.cluster.GetHTTPClient() }
func (m *scopedManager) GetConfig() *rest.Config              { return m.cluster.GetConfig() }
func (m *scopedManager) GetCache() cache.Cache                { return m.cluster.GetCache() }
func (m *scopedManager) GetScheme() *runtime.Scheme           { return m.cluster.GetScheme() }
func (m *scopedManager) GetClient() client.Client             { return m.cluster.GetClient() }
func (m *scopedManager) GetFieldIndexer() client.FieldIndexer { return m.cluster.GetFieldIndexer() }
func (m *scopedManager) GetRESTMapper() meta.RESTMapper       { return m.cluster.GetRESTMapper() }
func (m *scopedManager) GetAPIReader() client.Reader          { return m.cluster.GetAPIReader() }

func (m *scopedManager) GetEventRecorder(name string) recorder.EventRecorder {
	return m.cluster.GetEventRecorder(name)
}

func (m *scopedManager) GetEventRecorderFor(name string) record.EventRecorder {
	return m.cluster.GetEventRecorderFor(name) //nolint:staticcheck // deprecated, but part of the interface
}
