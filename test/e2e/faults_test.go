// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/test/internal/inmemory"
)

func TestConnectRetries(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault mctest.Fault
		err   string
	}{
		{"requests hang", mctest.Hang, "no engaged cluster within 1s"},
		{"the network drops everything", mctest.Freeze, "no engaged cluster within 1s"},
		{"connections are refused", mctest.Refuse, "refused"},
		{"connections are reset", mctest.Reset, "no response from"},
		{"the credentials are rejected", mctest.Unauthorized, "rejected the credentials"},
		{"requests are throttled", mctest.TooManyRequests(time.Second), "429"},
		{"the API server is unavailable", mctest.Unavailable, "503"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 3)
			bad, good := f.Cluster(0), f.Clusters()[1:]
			bad.Fault(tc.fault)
			e := newEnv(t)
			e.Add(f.Clusters()...)
			e.awaitState(bad, fleet.Backoff, tc.err)
			e.checkReconciles(good...)
			e.checkReconciles(good...)
			bad.Clear()
			e.awaitReady(bad)
			e.checkReconciles(f.Clusters()...)
			e.checkUndisturbed(good...)
			e.stopAndCheck(f.Clusters()...)
		})
	}
}

func TestWrongAccessRecovers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config func(t *testing.T, c *mctest.Cluster) *rest.Config
		err    string
	}{
		{"a host name that does not resolve", func(_ *testing.T, c *mctest.Cluster) *rest.Config {
			config := c.Config()
			config.Host = "https://cluster.invalid:6443"
			return config
		}, "lookup cluster.invalid"},
		{"a CA of another cluster", func(t *testing.T, c *mctest.Cluster) *rest.Config {
			config := c.Config()
			config.CAData = mctest.New(t).Config().CAData
			return config
		}, "x509: certificate signed by unknown authority"},
		{"an expired server certificate", func(t *testing.T, _ *mctest.Cluster) *rest.Config {
			return expiredServer(t)
		}, "certificate has expired"},
		{"an unknown token", func(_ *testing.T, c *mctest.Cluster) *rest.Config {
			return c.ConfigFor("unknown")
		}, "rejected the credentials"},
		{"a web server that is no API server", func(t *testing.T, _ *mctest.Cluster) *rest.Config {
			return &rest.Config{Host: webServer(t)}
		}, "is not from a Kubernetes API server"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 3)
			bad, good := f.Cluster(0), f.Clusters()[1:]
			e := newEnv(t, func(o *fleet.Options) { o.Connection.ConnectTimeout = mctest.Timeout })
			e.Add(good...)
			e.Connect(bad.Name(), tc.config(t, bad))
			e.Put(inmemory.ProfileOf(bad))
			e.awaitState(bad, fleet.Backoff, tc.err)
			e.checkReconciles(good...)
			e.checkReconciles(good...)
			e.Connect(bad.Name(), bad.Config())
			e.awaitReady(bad)
			e.checkReconciles(f.Clusters()...)
			e.checkUndisturbed(good...)
			e.stopAndCheck(f.Clusters()...)
		})
	}
}

func TestEngagedClusterRecovers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault mctest.Fault
		err   string
	}{
		{"requests hang, and open watches fall silent", mctest.Hang, "no response within 500ms"},
		{"the network drops everything", mctest.Freeze, "no response within 500ms"},
		{"connections are refused", mctest.Refuse, "refused"},
		{"connections are reset", mctest.Reset, "no response from"},
		{"the credentials are rejected", mctest.Unauthorized, "rejected the credentials"},
		{"the API server is unavailable", mctest.Unavailable, "503"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 3)
			bad, good := f.Cluster(0), f.Clusters()[1:]
			e := newEnv(t)
			e.Add(f.Clusters()...)
			e.checkReconciles(f.Clusters()...)

			bad.Fault(tc.fault)
			e.awaitState(bad, fleet.Degraded, tc.err)
			object := e.create(bad)
			e.checkReconciles(good...)
			e.checkReconciles(good...)
			bad.Clear()
			e.awaitReady(bad)
			e.awaitReconciled(object, bad)
			e.checkReconciles(f.Clusters()...)
			e.checkUndisturbed(f.Clusters()...)
			e.stopAndCheck(f.Clusters()...)
		})
	}
}

func TestPartialFailure(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault mctest.Fault
	}{
		{"discovery hangs", mctest.Hang.On("/api", "/apis", "/api/v1")},
		{"lists hang", mctest.Hang.On("configmaps")},
		{"one kind is forbidden", mctest.Forbidden.On("configmaps")},
		{"one kind resets connections", mctest.Reset.On("configmaps")},
		{"discovery is unavailable", mctest.Unavailable.On("/api", "/apis", "/api/v1")},
		{"lists are throttled", mctest.TooManyRequests(time.Second).On("configmaps")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 3)
			bad, good := f.Cluster(0), f.Clusters()[1:]
			bad.Fault(tc.fault)
			e := newEnv(t)
			e.Add(f.Clusters()...)
			e.awaitReady(good...)
			e.awaitState(bad, fleet.Ready, "") // the last error may say which cache is behind
			object := e.create(bad)
			e.checkReconciles(good...)
			e.checkReconciles(good...)
			bad.Clear()
			e.awaitReconciled(object, bad)
			e.checkReconciles(f.Clusters()...)
			e.checkUndisturbed(f.Clusters()...)
			e.stopAndCheck(f.Clusters()...)
		})
	}
}

func TestInterruptedWatches(t *testing.T) {
	for _, tc := range []struct {
		name      string
		interrupt func(*mctest.Cluster)
	}{
		{"watches expire", func(c *mctest.Cluster) { c.Fault(mctest.Expired)() }},
		{"the history is compacted during an outage", func(c *mctest.Cluster) {
			lift := c.Fault(mctest.Refuse)
			c.Compact()
			lift()
		}},
		{"connections are closed", (*mctest.Cluster).CloseConnections},
		{"requests are throttled for a moment", func(c *mctest.Cluster) {
			c.Fault(mctest.TooManyRequests(time.Second))
			c.CloseConnections()
			c.Clear()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 2)
			e := newEnv(t)
			e.Add(f.Clusters()...)
			e.checkReconciles(f.Clusters()...)
			for range 3 {
				tc.interrupt(f.Cluster(0))
				e.checkReconciles(f.Clusters()...)
			}
			e.checkUndisturbed(f.Clusters()...)
			e.awaitReady(f.Clusters()...)
			e.stopAndCheck(f.Clusters()...)
		})
	}
}
