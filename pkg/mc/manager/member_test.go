// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// member is a cluster that records the calls of its methods.
type member struct {
	cluster.Cluster
	calls []string
}

func (m *member) called(method string) { m.calls = append(m.calls, method) }

func (m *member) GetHTTPClient() *http.Client { m.called("GetHTTPClient"); return nil }
func (m *member) GetConfig() *rest.Config     { m.called("GetConfig"); return nil }
func (m *member) GetCache() cache.Cache       { m.called("GetCache"); return nil }
func (m *member) GetScheme() *runtime.Scheme  { m.called("GetScheme"); return nil }
func (m *member) GetClient() client.Client    { m.called("GetClient"); return nil }

func (m *member) GetFieldIndexer() client.FieldIndexer {
	m.called("GetFieldIndexer")
	return nil
}

func (m *member) GetRESTMapper() meta.RESTMapper { m.called("GetRESTMapper"); return nil }
func (m *member) GetAPIReader() client.Reader    { m.called("GetAPIReader"); return nil }

func (m *member) GetEventRecorder(string) recorder.EventRecorder {
	m.called("GetEventRecorder")
	return nil
}

func (m *member) GetEventRecorderFor(string) record.EventRecorder {
	m.called("GetEventRecorderFor")
	return nil
}
