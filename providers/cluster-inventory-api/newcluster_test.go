// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi_test

import (
	"context"
	"net"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

func TestNewClusterChangesConnection(t *testing.T) {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	for _, tc := range []struct {
		field  string
		copied bool
		set    func(*rest.Config)
	}{
		{"Dial", false, func(c *rest.Config) { c.Dial = dial }},
		{"Dial", true, func(c *rest.Config) { c.Dial = dial }},
		{"TLSClientConfig", false, func(c *rest.Config) { c.CAData = []byte("ca") }},
		{"TLSClientConfig", false, func(c *rest.Config) { c.Insecure = true }},
	} {
		t.Run(tc.field, func(t *testing.T) {
			g := NewWithT(t)
			f := newFixture(t, func(o *clusterinventoryapi.Options, _ *fixture) {
				o.Namespace = "kube-public"
				o.NewCluster = func(_ context.Context, _ *inventory.Profile, cfg *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
					if tc.copied {
						cfg = rest.CopyConfig(cfg)
					}
					tc.set(cfg)
					return cluster.New(cfg, opts...)
				}
			})
			lastError := func() string {
				for _, s := range f.Status() {
					return s.LastError
				}
				return ""
			}
			g.Eventually(lastError).WithTimeout(timeout).Should(ContainSubstring("NewCluster: must not set " + tc.field + " of the config"))
		})
	}
}
