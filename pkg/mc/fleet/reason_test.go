// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// fakeConnector is a Connector to fake clusters. Functions that are nil succeed.
type fakeConnector struct {
	connect func(ctx context.Context, p *inventory.Profile) error
	probe   func(ctx context.Context, n int) (uid string, err error) // the nth, from 1
	cluster cluster.Cluster
	opaque  bool // connections equal no other
}

func (s fakeConnector) Connect(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	if s.connect != nil {
		if err := s.connect(ctx, p); err != nil {
			return nil, err
		}
	}
	c := &fleet.Connection{Cluster: fakeCluster{}, Server: p.Status.AccessProviders[0].Cluster.Server}
	if !s.opaque {
		c.Fingerprint = p.Status.AccessProviders[0].Cluster.Server
	}
	if s.cluster != nil {
		c.Cluster = s.cluster
	}
	n := 0
	c.Probe = func(ctx context.Context) (string, error) {
		if n++; s.probe != nil {
			return s.probe(ctx, n)
		}
		return "u", nil
	}
	return c, nil
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// failLater returns a probe that succeeds once and fails after that.
func failLater(err error) func(context.Context, int) (string, error) {
	return func(_ context.Context, n int) (string, error) {
		if n == 1 {
			return "u", nil
		}
		return "", err
	}
}

// failingCluster is a cluster whose Start fails.
type failingCluster struct{ unsyncedCluster }

func (failingCluster) Start(context.Context) error { return errors.New("cannot start") }

// transitionsTo returns the value of the transition counter.
func transitionsTo(state fleet.State, reason fleet.Reason) (n float64) {
	families, _ := ctrlmetrics.Registry.Gather()
	for _, family := range families {
		if family.GetName() != "rollcall_fleet_transitions_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if labels := m.GetLabel(); labels[0].GetValue() == string(reason) && labels[1].GetValue() == string(state) {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func TestReasons(t *testing.T) {
	down := errors.New("down")
	put := func(server string) func(env *testEnv) {
		return func(env *testEnv) { env.source.put(profile("eu", server)) }
	}
	for _, tc := range []struct {
		fakeConnector
		state  fleet.State
		reason fleet.Reason
		after  time.Duration
		act    func(env *testEnv) // after one second
		engage func(e *awareRecorder) multicluster.Aware
		silent bool // another reason of the same state was logged
	}{
		{state: fleet.Connecting, reason: fleet.ResolvingAccess, fakeConnector: fakeConnector{connect: func(ctx context.Context, _ *inventory.Profile) error { return hang(ctx) }}},
		{state: fleet.Connecting, reason: fleet.CheckingIdentity, silent: true, fakeConnector: fakeConnector{probe: func(ctx context.Context, _ int) (string, error) { return "", hang(ctx) }}},
		{state: fleet.Syncing, reason: fleet.SyncingCaches, fakeConnector: fakeConnector{cluster: unsyncedCluster{}}},
		{state: fleet.Syncing, reason: fleet.Engaging, silent: true, engage: func(e *awareRecorder) multicluster.Aware { return blockingAware{e, "fleet/eu"} }},
		{state: fleet.Ready, reason: fleet.Engaged},
		{state: fleet.Ready, reason: fleet.AccessUpdateFailed, silent: true, act: put("bad"), fakeConnector: fakeConnector{connect: func(_ context.Context, p *inventory.Profile) error {
			if serverOf(p) == "bad" {
				return down
			}
			return nil
		}}},
		{state: fleet.Degraded, reason: fleet.Unreachable, after: time.Minute, fakeConnector: fakeConnector{probe: failLater(down)}},
		{state: fleet.Degraded, reason: fleet.Unauthorized, after: time.Minute, fakeConnector: fakeConnector{probe: failLater(apierrors.NewUnauthorized("no"))}},
		{state: fleet.Degraded, reason: fleet.UnexpectedResponse, after: time.Minute, fakeConnector: fakeConnector{probe: failLater(apierrors.NewInternalError(down))}},
		{state: fleet.Backoff, reason: fleet.HealthProbeFailed, after: 15 * time.Minute, fakeConnector: fakeConnector{probe: failLater(down)}},
		{state: fleet.Backoff, reason: fleet.ResolveFailed, fakeConnector: fakeConnector{connect: func(context.Context, *inventory.Profile) error { return down }}},
		{state: fleet.Backoff, reason: fleet.ResolveFailed, after: time.Minute, fakeConnector: fakeConnector{connect: func(ctx context.Context, _ *inventory.Profile) error { return hang(ctx) }}},
		{state: fleet.Backoff, reason: fleet.Unreachable, fakeConnector: fakeConnector{probe: func(context.Context, int) (string, error) { return "", down }}},
		{state: fleet.Backoff, reason: fleet.Unreachable, after: time.Minute, fakeConnector: fakeConnector{probe: func(ctx context.Context, _ int) (string, error) { return "", hang(ctx) }}},
		{state: fleet.Backoff, reason: fleet.Unauthorized, fakeConnector: fakeConnector{probe: func(context.Context, int) (string, error) { return "", apierrors.NewUnauthorized("no") }}},
		{state: fleet.Backoff, reason: fleet.CacheSyncTimeout, after: time.Minute, fakeConnector: fakeConnector{cluster: unsyncedCluster{}}},
		{state: fleet.Backoff, reason: fleet.CacheStopped, fakeConnector: fakeConnector{cluster: failingCluster{}}},
		{state: fleet.Backoff, reason: fleet.EngageFailed, engage: func(e *awareRecorder) multicluster.Aware { e.fail = down; return e }},
		{state: fleet.Backoff, reason: fleet.EngageFailed, after: time.Minute, engage: func(e *awareRecorder) multicluster.Aware { return blockingAware{e, "fleet/eu"} }},
		{state: fleet.Backoff, reason: fleet.IdentityChanged, after: 3 * time.Minute, fakeConnector: fakeConnector{opaque: true, probe: func(_ context.Context, n int) (string, error) { return fmt.Sprint(n), nil }}},
		{
			state: fleet.Backoff, reason: fleet.AccessChanged, fakeConnector: fakeConnector{connect: func(ctx context.Context, _ *inventory.Profile) error { return hang(ctx) }},
			act: func(env *testEnv) {
				for i := range 10 {
					put(fmt.Sprint(i))(env)
					synctest.Wait()
				}
			},
		},
	} {
		t.Run(fmt.Sprintf("%s %s after %v", tc.state, tc.reason, tc.after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				lines := &logRecorder{}
				ctx := log.IntoContext(t.Context(), funcr.New(lines.write, funcr.Options{Verbosity: 1}))
				if tc.engage == nil {
					tc.engage = func(e *awareRecorder) multicluster.Aware { return e }
				}
				env := startIn(ctx, t, nil, tc.engage, withConnector(tc.fakeConnector), func(o *fleet.Options) {
					o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = 30*time.Second, time.Hour, time.Hour
				})
				before := transitionsTo(tc.state, tc.reason)
				put("x")(env)
				time.Sleep(time.Second)
				if tc.act != nil {
					tc.act(env)
				}
				time.Sleep(tc.after)
				synctest.Wait()
				status := env.status("fleet/eu")
				g.Expect(status.State).To(Equal(tc.state), "%v", status)
				g.Expect(status.Reason).To(Equal(tc.reason))
				g.Expect(status.String()).To(HavePrefix(fmt.Sprintf("%s (%s)", tc.state, tc.reason)))
				if _, err := env.Get(t.Context(), "fleet/eu"); err != nil {
					g.Expect(err).To(MatchError(ContainSubstring(status.String())))
				}
				failed := 0.0
				if tc.reason == fleet.AccessUpdateFailed {
					failed = 1
					page := httptest.NewRecorder()
					env.StatusHandler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/fleet", nil))
					g.Expect(page.Body.String()).To(ContainSubstring(`class="Ready AccessUpdateFailed"`))
				}
				g.Expect(gauges("rollcall_fleet_access_update_failed")).To(Equal(map[string]float64{"": failed}))
				logged := lines.with(fmt.Sprintf(`"state"=%q "reason"=%q`, tc.state, tc.reason))
				g.Expect(len(logged) == 0).To(Equal(tc.silent))
				g.Expect(transitionsTo(tc.state, tc.reason) - before).To(BeEquivalentTo(len(logged)))
				env.stop()
			})
		})
	}
}

func TestWaitingReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		unblock := make(chan struct{})
		end := sync.OnceFunc(func() { close(unblock) })
		defer end()
		down := errors.New("down")
		lines := &logRecorder{}
		ctx := log.IntoContext(t.Context(), funcr.New(lines.write, funcr.Options{Verbosity: 1}))
		env := startIn(ctx, t, nil, func(e *awareRecorder) multicluster.Aware { return e }, withConnector(connectorFunc(
			func(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
				c := &fleet.Connection{Cluster: fakeCluster{}}
				switch p.Name {
				case "fails":
					return nil, down
				case "slow":
					c.Probe = func(context.Context) (string, error) {
						time.Sleep(2 * time.Second)
						return "u", nil
					}
				case "syncs":
					c.Cluster = unsyncedCluster{}
				case "stuck":
					c.Cluster = stuckCluster{unblock: unblock}
				}
				return c, nil
			})), func(o *fleet.Options) {
			o.Connection.StartupLimit, o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = 1, time.Hour, 10*time.Second, 10*time.Second
			o.Connection.Probe.Interval = -1
			o.ClusterName = func(p *inventory.Profile) multicluster.ClusterName {
				if p.Name == "successor" {
					return "stuck"
				}
				return multicluster.ClusterName(p.Name)
			}
		})
		is := func(name multicluster.ClusterName, state fleet.State, reason fleet.Reason) {
			t.Helper()
			synctest.Wait()
			status := env.status(name)
			g.Expect(fmt.Sprint(status.State, " ", status.Reason)).To(Equal(fmt.Sprint(state, " ", reason)))
		}
		env.source.put(profile("stuck", "x"))
		is("stuck", fleet.Ready, fleet.Engaged)
		time.Sleep(2 * time.Hour) // its slot is free
		env.source.put(profile("fails", "x"))
		is("fails", fleet.Backoff, fleet.ResolveFailed)
		for _, name := range []string{"slow", "syncs", "waits"} { // in this order
			env.source.put(profile(name, "x"))
			synctest.Wait()
		}
		is("waits", fleet.Pending, fleet.WaitingForStartupSlot)
		g.Expect(lines.with(`"state"="Pending" "reason"="Added"`)).To(HaveLen(5))
		time.Sleep(3 * time.Second)
		is("syncs", fleet.Syncing, fleet.SyncingCaches)
		is("slow", fleet.Connecting, fleet.WaitingForStartupSlot)
		time.Sleep(10 * time.Second)
		is("fails", fleet.Pending, fleet.WaitingForStartupSlot)
		g.Expect(env.status("fails").LastError).To(Equal("down"))

		env.source.remove("stuck")
		is("stuck", fleet.Leaving, fleet.Removed)
		env.source.put(profile("stuck", "x"), profile("successor", "x"))
		is("stuck", fleet.Pending, fleet.DuplicateName)
		g.Expect(env.Status()).To(ContainElement(And(HaveField("Profile.Name", "successor"), HaveField("Reason", fleet.DuplicateName))))
		end()
		is("stuck", fleet.Pending, fleet.WaitingForStartupSlot)
		env.stop()
	})
}

func TestReasonsOfRESTConfigs(t *testing.T) {
	setup := func(o *fleet.Options) {
		o.Connection.NewCluster = func(context.Context, *inventory.Profile, *rest.Config, ...cluster.Option) (cluster.Cluster, error) {
			return nil, errors.New("no")
		}
	}
	for _, tc := range []struct {
		name   string
		faults []mctest.Fault
		change func(o *fleet.Options)
		want   fleet.Reason
	}{
		{"connection refused", []mctest.Fault{mctest.Refuse}, nil, fleet.Unreachable},
		{"other certificate authority", nil, func(o *fleet.Options) {
			o.Credentials = withoutCA{o.Credentials.(*fakeMethod)}
		}, fleet.CertificateInvalid},
		{"401", []mctest.Fault{mctest.Unauthorized}, nil, fleet.Unauthorized},
		{"503", []mctest.Fault{mctest.Unavailable}, nil, fleet.UnexpectedResponse},
		{"429", []mctest.Fault{mctest.TooManyRequests(time.Second)}, nil, fleet.TooManyRequests},
		{"a REST option fails", nil, func(o *fleet.Options) {
			o.Connection.RESTOptions = []func(*rest.Config) error{func(*rest.Config) error { return errors.New("no") }}
		}, fleet.ResolveFailed},
		{"NewCluster fails", nil, setup, fleet.SetupFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			for _, fault := range tc.faults {
				c.Fault(fault)
			}
			env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) {
				o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour
				if tc.change != nil {
					tc.change(o)
				}
			})
			env.source.put(profile("eu", c.Config().Host))
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Backoff))
			g.Expect(env.status("fleet/eu").Reason).To(Equal(tc.want))
		})
	}
}

// withoutCA trusts only the certificate authorities of the system.
type withoutCA struct{ *fakeMethod }

func (m withoutCA) Resolve(_ context.Context, p *inventory.Profile) (*credentials.Access, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	config := rest.CopyConfig(m.configs[p.Status.AccessProviders[0].Cluster.Server])
	config.CAData = nil
	return credentials.FromRESTConfig(config), nil
}

func TestStatusHandlerFields(t *testing.T) {
	g := NewWithT(t)
	env := start(t, nil, withConnector(fakeConnector{}))
	p := profile("eu", "https://me:s3cret@eu.example")
	env.source.put(p)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	env.source.put(profile("other", "https://me:s3cret@eu.example"))
	g.Eventually(env.state("fleet/other")).Should(Equal(fleet.Duplicate))
	for _, target := range []string{"/fleet", "/fleet?format=json"} {
		resp := httptest.NewRecorder()
		env.StatusHandler().ServeHTTP(resp, httptest.NewRequest(http.MethodGet, target, nil))
		g.Expect(resp.Body.String()).To(And(ContainSubstring("Engaged"), ContainSubstring("https://eu.example")))
		g.Expect(resp.Body.String()).NotTo(Or(ContainSubstring("s3cret"), ContainSubstring("me@")))
	}
	resp := httptest.NewRecorder()
	env.StatusHandler().ServeHTTP(resp, httptest.NewRequest(http.MethodGet, "/fleet", nil))
	g.Expect(resp.Body.String()).To(And(ContainSubstring("<td>fleet/other </td>"), ContainSubstring("<td>u</td>")))
	resp = httptest.NewRecorder()
	env.StatusHandler().ServeHTTP(resp, httptest.NewRequest(http.MethodGet, "/fleet?format=json", nil))
	var body struct{ Clusters []fleet.ClusterStatus }
	g.Expect(json.Unmarshal(resp.Body.Bytes(), &body)).To(Succeed())
	g.Expect(body.Clusters).To(ConsistOf(And(
		HaveField("Reason", fleet.Engaged), HaveField("UID", "u"),
		HaveField("Alternates", []inventory.Key{{Namespace: "fleet", Name: "other"}})),
		And(HaveField("Reason", fleet.DuplicateCluster), HaveField("DuplicateOf", multicluster.ClusterName("fleet/eu")))))
}
