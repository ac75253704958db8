// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestBeforeTheInventoryHasBeenReadAnyClusterMayBeOnTheRoll(t *testing.T) {
	g := NewWithT(t)
	read := make(chan struct{})
	w := start(t, nil, func(o *fleet.Options) {
		o.Source = inventory.SourceFunc(func(ctx context.Context, sink inventory.Sink) error {
			select {
			case <-read:
				sink.Synced()
				<-ctx.Done()
			case <-ctx.Done():
			}
			return nil
		})
	})
	get := func() error {
		_, err := w.Get(t.Context(), "fleet/eu")
		return err
	}
	page := func(target string) string {
		resp := httptest.NewRecorder()
		w.StatusHandler().ServeHTTP(resp, httptest.NewRequest(http.MethodGet, target, nil))
		return resp.Body.String()
	}
	const text = "has not been listed yet"
	synced := func() map[string]float64 { return gauges("rollcall_fleet_inventory_synced") }

	g.Expect(get()).To(And(MatchError(multicluster.ErrClusterNotFound), MatchError(multicluster.ErrClusterNotReady), MatchError(ContainSubstring(text))))
	g.Expect(page("/fleet")).To(ContainSubstring(text))
	g.Expect(page("/fleet?format=json")).To(ContainSubstring(`"synced":false`))
	g.Eventually(synced).WithTimeout(patience).Should(HaveKeyWithValue("", 0.0))

	close(read)
	g.Eventually(get).WithTimeout(patience).Should(And(MatchError(multicluster.ErrClusterNotFound), Not(MatchError(multicluster.ErrClusterNotReady))))
	g.Expect(page("/fleet")).NotTo(ContainSubstring(text))
	g.Expect(page("/fleet?format=json")).To(ContainSubstring(`"synced":true`))
	g.Expect(synced()).To(HaveKeyWithValue("", 1.0))
}

func TestClustersHaveTheManagersScheme(t *testing.T) {
	own, other := runtime.NewScheme(), runtime.NewScheme()
	for _, s := range []*runtime.Scheme{own, other} {
		if err := scheme.AddToScheme(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name    string
		scheme  *runtime.Scheme
		options []cluster.Option
		want    *runtime.Scheme
	}{
		{"by default", own, nil, own},
		{
			"unless an option says otherwise", own,
			[]cluster.Option{func(o *cluster.Options) { o.Scheme = other }}, other,
		},
		{"and controller-runtime's without a manager", nil, nil, scheme.Scheme},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			ctx := multicluster.WithScheme(t.Context(), test.scheme)
			w := startIn(ctx, t, []*mctest.Cluster{c}, func(e *engagements) multicluster.Aware { return e }, func(o *fleet.Options) { o.Connection.ClusterOptions = test.options })
			w.list.put(profile("eu", c.Config().Host))
			g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
			cl, err := w.Get(t.Context(), "fleet/eu")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cl.GetScheme()).To(BeIdenticalTo(test.want))
		})
	}
}
