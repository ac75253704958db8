// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// twoClusters is an inventory of the clusters eu and us.
var twoClusters = inventory.SourceFunc(func(ctx context.Context, sink inventory.Sink) error {
	for _, name := range []string{"eu", "us"} {
		sink.Put(&inventory.Profile{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name},
			Status:     v1alpha1.ClusterProfileStatus{AccessProviders: []inventory.AccessProvider{{Name: "example"}}},
		})
	}
	sink.Synced()
	<-ctx.Done()
	return nil
})

// exampleMethod is a credentials.Method with a test cluster for each profile.
type exampleMethod map[string]*mctest.Cluster

func (m exampleMethod) Resolve(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	c, ok := m[profile.Name]
	if !ok {
		return nil, errors.New("no such cluster")
	}
	return credentials.FromRESTConfig(c.Config()), nil
}

// A controller reconciles the clusters of an inventory.
func Example() {
	t, end := exampletest.New() // in a test: its own t
	defer end()
	test := mctest.NewFleet(t, 3)

	f, err := fleet.New(fleet.Options{
		Source:      twoClusters,
		Credentials: exampleMethod{"eu": test.Cluster(1), "us": test.Cluster(2)},
		Connection:  fleet.ConnectionOptions{ConnectTimeout: 10 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := mcmanager.New(test.Cluster(0).Config(), f, mctest.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	requests := make(chan string, 100)
	err = mcbuilder.ControllerManagedBy(mgr).For(&corev1.Namespace{}).Complete(mcreconcile.Func(
		func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			if req.Name == metav1.NamespaceDefault {
				requests <- req.String()
			}
			return reconcile.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	mctest.StartManager(t, mgr)
	fmt.Println(<-requests)
	fmt.Println(<-requests)
	// Unordered output:
	// cluster://fleet/eu//default
	// cluster://fleet/us//default
}

// exampleConnector connects clusters that the program has created itself.
type exampleConnector map[string]cluster.Cluster

func (c exampleConnector) Connect(_ context.Context, profile *inventory.Profile) (*fleet.Connection, error) {
	cl, ok := c[profile.Name]
	if !ok {
		return nil, errors.New("no such cluster")
	}
	return &fleet.Connection{
		Cluster:     cl,
		Fingerprint: profile.Name, // a connection never changes
		Probe: func(ctx context.Context) (uid string, err error) {
			system := &corev1.Namespace{}
			err = cl.GetAPIReader().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system)
			return string(system.UID), err
		},
		Close: func() { cl.GetHTTPClient().CloseIdleConnections() },
	}, nil
}

func ExampleConnector() {
	t, end := exampletest.New() // in a test: its own t
	defer end()
	test := mctest.NewFleet(t, 3)
	connector := exampleConnector{}
	for i, name := range []string{"eu", "us"} {
		cl, err := cluster.New(test.Cluster(i + 1).Config())
		if err != nil {
			t.Fatal(err)
		}
		connector[name] = cl
	}

	f, err := fleet.New(fleet.Options{Source: twoClusters, Connector: connector})
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := mcmanager.New(test.Cluster(0).Config(), f, mctest.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	mctest.StartManager(t, mgr)
	for len(f.ClusterNames()) < 2 {
		time.Sleep(time.Millisecond)
	}
	cl, err := f.Get(context.Background(), "fleet/eu")
	if err != nil {
		t.Fatal(err)
	}
	profile, _ := fleet.ProfileFrom(cl)
	fmt.Println(profile.Name)
	// Output: eu
}

// A manager serves the status page on its metrics server, and is ready when nine
// of ten clusters are.
func ExampleFleet_StatusHandler() {
	t, end := exampletest.New() // in a test: its own t
	defer end()
	test := mctest.NewFleet(t, 2)
	f, err := fleet.New(fleet.Options{
		Source:      twoClusters,
		Credentials: exampleMethod{"eu": test.Cluster(1)}, // us cannot be connected
	})
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := mcmanager.New(test.Cluster(0).Config(), f, mctest.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.AddMetricsServerExtraHandler("/fleet", f.StatusHandler()); err != nil {
		t.Fatal(err)
	}
	if err := mgr.AddReadyzCheck("fleet", f.ReadyCheck(0.9)); err != nil {
		t.Fatal(err)
	}
	mctest.StartManager(t, mgr)
	for len(f.ClusterNames()) < 1 {
		time.Sleep(time.Millisecond)
	}

	page := httptest.NewRecorder()
	f.StatusHandler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/fleet?format=json", nil))
	fmt.Println(page.Code, page.Header().Get("Content-Type"))
	for {
		err := f.ReadyCheck(0.9)(nil)
		if err != nil && err.Error() == "1 of 2 clusters are ready, need 90 %" {
			fmt.Println(err)
			break
		}
		time.Sleep(time.Millisecond)
	}
	// Output:
	// 200 application/json
	// 1 of 2 clusters are ready, need 90 %
}
