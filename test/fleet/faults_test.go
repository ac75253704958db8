// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestAClusterThatCannotBeConnectedIsWaitedFor(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault mctest.Fault
		err   string
	}{
		{"it accepts connections and never answers", mctest.Hang, "no result within 1s"},
		{"its network swallows everything", mctest.Freeze, "no result within 1s"},
		{"it refuses connections", mctest.Refuse, "refused"},
		{"it resets every connection", mctest.Reset, "does not answer"},
		{"it does not accept the credentials", mctest.Unauthorized, "does not accept the credentials"},
		{"it has too many requests", mctest.TooManyRequests(time.Second), "429"},
		{"it is not available", mctest.Unavailable, "503"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 3)
			bad, good := f.Cluster(0), f.Clusters()[1:]
			bad.Fault(tc.fault)
			s := newStage(t)
			s.join(f.Clusters()...)
			s.awaitState(bad, fleet.Backoff, tc.err)
			s.beat(good...)
			s.beat(good...)
			bad.Clear()
			s.awaitReady(bad)
			s.beat(f.Clusters()...)
			s.goodUntouched(good)
			s.nothingIsLeft(f.Clusters()...)
		})
	}
}

func TestAWrongWayToAClusterIsWaitedToBeMended(t *testing.T) {
	for _, tc := range []struct {
		name string
		way  func(t *testing.T, c *mctest.Cluster) *rest.Config
		err  string
	}{
		{"a host name that does not resolve", func(_ *testing.T, c *mctest.Cluster) *rest.Config {
			config := c.Config()
			config.Host = "https://cluster.invalid:6443"
			return config
		}, "lookup cluster.invalid"},
		{"a certificate authority that is not its own", func(t *testing.T, c *mctest.Cluster) *rest.Config {
			config := c.Config()
			config.CAData = mctest.New(t).Config().CAData
			return config
		}, "x509: certificate signed by unknown authority"},
		{"a server whose certificate has expired", func(t *testing.T, _ *mctest.Cluster) *rest.Config {
			return expiredServer(t)
		}, "certificate has expired"},
		{"a token that is not known", func(_ *testing.T, c *mctest.Cluster) *rest.Config {
			return c.ConfigFor("unknown")
		}, "does not accept the credentials"},
		{"something that is no API server", func(t *testing.T, _ *mctest.Cluster) *rest.Config {
			return &rest.Config{Host: webServer(t)}
		}, "does not answer as a Kubernetes API server does"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 3)
			bad, good := f.Cluster(0), f.Clusters()[1:]
			s := newStage(t, func(o *fleet.Options) { o.Connection.ConnectTimeout = patience })
			s.join(good...)
			s.lead(bad.Name(), tc.way(t, bad))
			s.put(profileOf(bad))
			s.awaitState(bad, fleet.Backoff, tc.err)
			s.beat(good...)
			s.beat(good...)
			s.lead(bad.Name(), bad.Config())
			s.awaitReady(bad)
			s.beat(f.Clusters()...)
			s.goodUntouched(good)
			s.nothingIsLeft(f.Clusters()...)
		})
	}
}

func TestAClusterThatFailsOnceEngagedComesBackByItself(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault mctest.Fault
		err   string
	}{
		{"it hangs, in mid-watch", mctest.Hang, "no answer within 500ms"},
		{"its network swallows everything", mctest.Freeze, "no answer within 500ms"},
		{"it refuses connections", mctest.Refuse, "refused"},
		{"it resets every connection", mctest.Reset, "does not answer"},
		{"it does not accept the credentials any more", mctest.Unauthorized, "does not accept the credentials"},
		{"it is not available", mctest.Unavailable, "503"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 3)
			bad, good := f.Cluster(0), f.Clusters()[1:]
			s := newStage(t)
			s.join(f.Clusters()...)
			s.beat(f.Clusters()...)

			bad.Fault(tc.fault)
			s.awaitState(bad, fleet.Degraded, tc.err)
			meanwhile := s.write(bad)
			s.beat(good...)
			s.beat(good...)
			bad.Clear()
			s.awaitReady(bad)
			s.await(meanwhile, bad)
			s.beat(f.Clusters()...)
			s.goodUntouched(f.Clusters())
			s.nothingIsLeft(f.Clusters()...)
		})
	}
}

func TestAClusterThatFailsInPartIsUsedAsFarAsItGoes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault mctest.Fault
	}{
		{"discovery hangs", mctest.Hang.On("/api", "/apis", "/api/v1")},
		{"lists hang", mctest.Hang.On("configmaps")},
		{"one kind is forbidden", mctest.Forbidden.On("configmaps")},
		{"one kind resets connections", mctest.Reset.On("configmaps")},
		{"discovery is not available", mctest.Unavailable.On("/api", "/apis", "/api/v1")},
		{"lists have too many requests", mctest.TooManyRequests(time.Second).On("configmaps")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 3)
			bad, good := f.Cluster(0), f.Clusters()[1:]
			bad.Fault(tc.fault)
			s := newStage(t)
			s.join(f.Clusters()...)
			s.awaitReady(f.Clusters()...)
			meanwhile := s.write(bad)
			s.beat(good...)
			s.beat(good...)
			bad.Clear()
			s.await(meanwhile, bad)
			s.beat(f.Clusters()...)
			s.goodUntouched(f.Clusters())
			s.nothingIsLeft(f.Clusters()...)
		})
	}
}

func TestAClusterWhoseWatchesAreTroubledMissesNothing(t *testing.T) {
	for _, tc := range []struct {
		name    string
		trouble func(*mctest.Cluster)
	}{
		{"they expire", func(c *mctest.Cluster) { c.Fault(mctest.Expired)() }},
		{"the history is compacted while nothing is connected", func(c *mctest.Cluster) {
			lift := c.Fault(mctest.Refuse)
			c.Compact()
			lift()
		}},
		{"connections are closed", (*mctest.Cluster).CloseConnections},
		{"there are too many requests for a moment", func(c *mctest.Cluster) {
			c.Fault(mctest.TooManyRequests(time.Second))
			c.CloseConnections()
			c.Clear()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 2)
			s := newStage(t)
			s.join(f.Clusters()...)
			s.beat(f.Clusters()...)
			for range 3 {
				tc.trouble(f.Cluster(0))
				s.beat(f.Clusters()...)
			}
			s.goodUntouched(f.Clusters())
			s.awaitReady(f.Clusters()...)
			s.nothingIsLeft(f.Clusters()...)
		})
	}
}

// goodUntouched checks that the clusters have been engaged once, and are Ready.
func (s *stage) goodUntouched(clusters []*mctest.Cluster) {
	s.t.Helper()
	for _, c := range clusters {
		NewWithT(s.t).Expect(s.engagements(c)).To(Equal(1), c.Name())
	}
	s.awaitReady(clusters...)
}
