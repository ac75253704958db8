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

func TestInventoryNotListed(t *testing.T) {
	g := NewWithT(t)
	read := make(chan struct{})
	env := start(t, nil, func(o *fleet.Options) {
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
		_, err := env.Get(t.Context(), "fleet/eu")
		return err
	}
	page := func(target string) string {
		resp := httptest.NewRecorder()
		env.StatusHandler().ServeHTTP(resp, httptest.NewRequest(http.MethodGet, target, nil))
		return resp.Body.String()
	}
	const text = "has not been listed yet"
	synced := func() map[string]float64 { return gauges("rollcall_fleet_inventory_synced") }

	g.Expect(get()).To(And(MatchError(multicluster.ErrClusterNotFound), MatchError(multicluster.ErrClusterNotReady), MatchError(ContainSubstring(text))))
	g.Expect(page("/fleet")).To(ContainSubstring(text))
	g.Expect(page("/fleet?format=json")).To(ContainSubstring(`"synced":false`))
	g.Eventually(synced).Should(HaveKeyWithValue("", 0.0))

	close(read)
	g.Eventually(get).Should(And(MatchError(multicluster.ErrClusterNotFound), Not(MatchError(multicluster.ErrClusterNotReady))))
	g.Expect(page("/fleet")).NotTo(ContainSubstring(text))
	g.Expect(page("/fleet?format=json")).To(ContainSubstring(`"synced":true`))
	g.Expect(synced()).To(HaveKeyWithValue("", 1.0))
}

func TestClusterScheme(t *testing.T) {
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
		{"of the manager by default", own, nil, own},
		{
			"of an option", own,
			[]cluster.Option{func(o *cluster.Options) { o.Scheme = other }}, other,
		},
		{"of controller-runtime without a manager", nil, nil, scheme.Scheme},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			ctx := multicluster.WithScheme(t.Context(), test.scheme)
			env := startIn(ctx, t, []*mctest.Cluster{c}, func(e *awareRecorder) multicluster.Aware { return e }, func(o *fleet.Options) { o.Connection.ClusterOptions = test.options })
			env.source.put(profile("eu", c.Config().Host))
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
			cl, err := env.Get(t.Context(), "fleet/eu")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cl.GetScheme()).To(BeIdenticalTo(test.want))
		})
	}
}
