// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// idleCluster is a cluster without informers.
type idleCluster struct{ cluster.Cluster }

func (idleCluster) GetConfig() *rest.Config { return nil }

func (idleCluster) GetCache() cache.Cache { return idleCache{} }

func (idleCluster) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

type idleCache struct{ cache.Cache }

func (idleCache) WaitForCacheSync(context.Context) bool { return true }

// BenchmarkStatusPage serves the status page of 2,000 clusters.
func BenchmarkStatusPage(b *testing.B) {
	const clusters = 2000
	member := mctest.New(b)
	source := newFakeSource()
	f, err := fleet.New(fleet.Options{Source: source, Credentials: newFakeMethod(member), KeepDuplicates: true, Connection: fleet.ConnectionOptions{
		ConnectTimeout: time.Minute,
		Probe:          fleet.ProbeOptions{Interval: -1},
		NewCluster: func(context.Context, *inventory.Profile, *rest.Config, ...cluster.Option) (cluster.Cluster, error) {
			return idleCluster{}, nil
		},
	}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Start(ctx, &awareRecorder{}) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()
	for i := range clusters {
		p := profile(fmt.Sprintf("cluster-%04d", i), member.Config().Host)
		p.Status.Version.Kubernetes = "v1.37.1"
		p.Status.Properties = []v1alpha1.Property{{Name: inventory.PropertyClusterID, Value: p.Name}, {Name: inventory.PropertyClusterSet, Value: "production"}}
		source.put(p)
	}
	for ready := 0; ready < clusters; time.Sleep(10 * time.Millisecond) {
		ready = 0
		for _, status := range f.Status() {
			if status.State == fleet.Ready {
				ready++
			}
		}
	}
	handler := f.StatusHandler()
	request := httptest.NewRequest(http.MethodGet, "/fleet", nil)
	b.Run("Status", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.Status()
		}
	})
	b.Run("Page", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, request)
			if response.Code != http.StatusOK {
				b.Fatal(response.Code)
			}
		}
	})
}
