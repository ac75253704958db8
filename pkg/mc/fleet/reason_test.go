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

// scene is a cluster whose connection a test writes; what is nil goes well.
type scene struct {
	connect func(ctx context.Context, p *inventory.Profile) error
	probe   func(ctx context.Context, n int) (uid string, err error) // the nth, from 1
	cluster cluster.Cluster
	opaque  bool // connections equal no other
}

func (s scene) Connect(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	if s.connect != nil {
		if err := s.connect(ctx, p); err != nil {
			return nil, err
		}
	}
	c := &fleet.Connection{Cluster: imaginaryCluster{}, Server: p.Status.AccessProviders[0].Cluster.Server}
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

// laterOn is a probe that succeeds first and fails then.
func laterOn(err error) func(context.Context, int) (string, error) {
	return func(_ context.Context, n int) (string, error) {
		if n == 1 {
			return "u", nil
		}
		return "", err
	}
}

// endsSoon is a cluster that cannot run.
type endsSoon struct{ neverSynced }

func (endsSoon) Start(context.Context) error { return errors.New("cannot start") }

// transitionsTo returns how many the metric has counted.
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

func TestTheStatusSaysWhyAClusterIsInItsState(t *testing.T) {
	down := errors.New("down")
	put := func(server string) func(w *world) { return func(w *world) { w.list.put(profile("eu", server)) } }
	for _, tc := range []struct {
		scene
		state  fleet.State
		reason fleet.Reason
		after  time.Duration
		act    func(w *world) // after one second
		engage func(e *engagements) multicluster.Aware
		silent bool // it came with a line for another reason
	}{
		{state: fleet.Connecting, reason: fleet.ResolvingAccess, scene: scene{connect: func(ctx context.Context, _ *inventory.Profile) error { return hang(ctx) }}},
		{state: fleet.Connecting, reason: fleet.CheckingIdentity, silent: true, scene: scene{probe: func(ctx context.Context, _ int) (string, error) { return "", hang(ctx) }}},
		{state: fleet.Syncing, reason: fleet.SyncingCaches, scene: scene{cluster: neverSynced{}}},
		{state: fleet.Syncing, reason: fleet.Engaging, silent: true, engage: func(e *engagements) multicluster.Aware { return unhurried{e, "fleet/eu"} }},
		{state: fleet.Ready, reason: fleet.Engaged},
		{state: fleet.Ready, reason: fleet.AccessUpdateFailed, silent: true, act: put("bad"), scene: scene{connect: func(_ context.Context, p *inventory.Profile) error {
			if p.Status.AccessProviders[0].Cluster.Server == "bad" {
				return down
			}
			return nil
		}}},
		{state: fleet.Degraded, reason: fleet.Unreachable, after: time.Minute, scene: scene{probe: laterOn(down)}},
		{state: fleet.Degraded, reason: fleet.Unauthorized, after: time.Minute, scene: scene{probe: laterOn(apierrors.NewUnauthorized("no"))}},
		{state: fleet.Degraded, reason: fleet.UnexpectedResponse, after: time.Minute, scene: scene{probe: laterOn(apierrors.NewInternalError(down))}},
		{state: fleet.Backoff, reason: fleet.HealthProbeFailed, after: 15 * time.Minute, scene: scene{probe: laterOn(down)}},
		{state: fleet.Backoff, reason: fleet.ResolveFailed, scene: scene{connect: func(context.Context, *inventory.Profile) error { return down }}},
		{state: fleet.Backoff, reason: fleet.ResolveFailed, after: time.Minute, scene: scene{connect: func(ctx context.Context, _ *inventory.Profile) error { return hang(ctx) }}},
		{state: fleet.Backoff, reason: fleet.Unreachable, scene: scene{probe: func(context.Context, int) (string, error) { return "", down }}},
		{state: fleet.Backoff, reason: fleet.Unreachable, after: time.Minute, scene: scene{probe: func(ctx context.Context, _ int) (string, error) { return "", hang(ctx) }}},
		{state: fleet.Backoff, reason: fleet.Unauthorized, scene: scene{probe: func(context.Context, int) (string, error) { return "", apierrors.NewUnauthorized("no") }}},
		{state: fleet.Backoff, reason: fleet.CacheSyncTimeout, after: time.Minute, scene: scene{cluster: neverSynced{}}},
		{state: fleet.Backoff, reason: fleet.CacheStopped, scene: scene{cluster: endsSoon{}}},
		{state: fleet.Backoff, reason: fleet.EngageFailed, engage: func(e *engagements) multicluster.Aware { e.fail = down; return e }},
		{state: fleet.Backoff, reason: fleet.EngageFailed, after: time.Minute, engage: func(e *engagements) multicluster.Aware { return unhurried{e, "fleet/eu"} }},
		{state: fleet.Backoff, reason: fleet.IdentityChanged, after: 2 * time.Minute, scene: scene{opaque: true, probe: func(_ context.Context, n int) (string, error) { return fmt.Sprint(n), nil }}},
		{
			state: fleet.Backoff, reason: fleet.AccessChanged, scene: scene{connect: func(ctx context.Context, _ *inventory.Profile) error { return hang(ctx) }},
			act: func(w *world) {
				for i := range 10 {
					put(fmt.Sprint(i))(w)
					synctest.Wait()
				}
			},
		},
	} {
		t.Run(fmt.Sprintf("%s %s after %v", tc.state, tc.reason, tc.after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				lines := &notebook{}
				ctx := log.IntoContext(t.Context(), funcr.New(lines.write, funcr.Options{Verbosity: 1}))
				if tc.engage == nil {
					tc.engage = func(e *engagements) multicluster.Aware { return e }
				}
				w := startIn(ctx, t, nil, tc.engage, withConnector(tc.scene), func(o *fleet.Options) {
					o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = 30*time.Second, time.Hour, time.Hour
				})
				before := transitionsTo(tc.state, tc.reason)
				put("x")(w)
				time.Sleep(time.Second)
				if tc.act != nil {
					tc.act(w)
				}
				time.Sleep(tc.after)
				synctest.Wait()
				status := w.status("fleet/eu")
				g.Expect(status.State).To(Equal(tc.state), "%v", status)
				g.Expect(status.Reason).To(Equal(tc.reason))
				g.Expect(status.String()).To(HavePrefix(fmt.Sprintf("%s (%s)", tc.state, tc.reason)))
				if _, err := w.Get(t.Context(), "fleet/eu"); err != nil {
					g.Expect(err).To(MatchError(ContainSubstring(status.String())))
				}
				told := lines.with(fmt.Sprintf(`"state"=%q "reason"=%q`, tc.state, tc.reason))
				g.Expect(len(told) == 0).To(Equal(tc.silent))
				g.Expect(transitionsTo(tc.state, tc.reason) - before).To(BeEquivalentTo(len(told)))
				w.stop()
			})
		})
	}
}

func TestTheStatusSaysWhatAClusterWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		letGo := make(chan struct{})
		end := sync.OnceFunc(func() { close(letGo) })
		defer end()
		down := errors.New("down")
		lines := &notebook{}
		ctx := log.IntoContext(t.Context(), funcr.New(lines.write, funcr.Options{Verbosity: 1}))
		w := startIn(ctx, t, nil, func(e *engagements) multicluster.Aware { return e }, withConnector(connectorFunc(
			func(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
				c := &fleet.Connection{Cluster: imaginaryCluster{}}
				switch p.Name {
				case "fails":
					return nil, down
				case "slow":
					c.Probe = func(context.Context) (string, error) {
						time.Sleep(2 * time.Second)
						return "u", nil
					}
				case "syncs":
					c.Cluster = neverSynced{}
				case "undying":
					c.Cluster = undying{letGo: letGo}
				}
				return c, nil
			})), func(o *fleet.Options) {
			o.Connection.StartupLimit, o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = 1, time.Hour, 10*time.Second, 10*time.Second
			o.Connection.Probe.Interval = -1
			o.ClusterName = func(p *inventory.Profile) multicluster.ClusterName {
				if p.Name == "heir" {
					return "undying"
				}
				return multicluster.ClusterName(p.Name)
			}
		})
		is := func(name multicluster.ClusterName, state fleet.State, reason fleet.Reason) {
			t.Helper()
			synctest.Wait()
			status := w.status(name)
			g.Expect(fmt.Sprint(status.State, " ", status.Reason)).To(Equal(fmt.Sprint(state, " ", reason)))
		}
		w.list.put(profile("undying", "x"))
		is("undying", fleet.Ready, fleet.Engaged)
		time.Sleep(2 * time.Hour) // its place is free
		w.list.put(profile("fails", "x"))
		is("fails", fleet.Backoff, fleet.ResolveFailed)
		for _, name := range []string{"slow", "syncs", "waits"} { // in this order
			w.list.put(profile(name, "x"))
			synctest.Wait()
		}
		is("waits", fleet.Pending, fleet.WaitingForStartupSlot)
		g.Expect(lines.with(`"state"="Pending" "reason"="Added"`)).To(HaveLen(5))
		time.Sleep(3 * time.Second)
		is("syncs", fleet.Syncing, fleet.SyncingCaches)
		is("slow", fleet.Connecting, fleet.WaitingForStartupSlot)
		time.Sleep(10 * time.Second)
		is("fails", fleet.Pending, fleet.WaitingForStartupSlot)
		g.Expect(w.status("fails").LastError).To(Equal("down"))

		w.list.remove("undying")
		is("undying", fleet.Leaving, fleet.Removed)
		w.list.put(profile("undying", "x"), profile("heir", "x"))
		is("undying", fleet.Pending, fleet.DuplicateName)
		g.Expect(w.Status()).To(ContainElement(And(HaveField("Profile.Name", "heir"), HaveField("Reason", fleet.DuplicateName))))
		end()
		is("undying", fleet.Pending, fleet.WaitingForStartupSlot)
		w.stop()
	})
}

func TestReasonsOfClustersThatAreBuiltFromARESTConfig(t *testing.T) {
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
		{"it refuses", []mctest.Fault{mctest.Refuse}, nil, fleet.Unreachable},
		{"it has another certificate authority", nil, func(o *fleet.Options) {
			o.Credentials = withoutItsCA{o.Credentials.(*method)}
		}, fleet.CertificateInvalid},
		{"it does not accept the credentials", []mctest.Fault{mctest.Unauthorized}, nil, fleet.Unauthorized},
		{"it is not available", []mctest.Fault{mctest.Unavailable}, nil, fleet.UnexpectedResponse},
		{"a REST option fails", nil, func(o *fleet.Options) {
			o.Connection.RESTOptions = []func(*rest.Config) error{func(*rest.Config) error { return errors.New("no") }}
		}, fleet.ResolveFailed},
		{"it cannot be made", nil, setup, fleet.SetupFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			for _, fault := range tc.faults {
				c.Fault(fault)
			}
			w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) {
				o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour
				if tc.change != nil {
					tc.change(o)
				}
			})
			w.list.put(profile("eu", c.Config().Host))
			g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Backoff))
			g.Expect(w.status("fleet/eu").Reason).To(Equal(tc.want))
		})
	}
}

// withoutItsCA trusts none but the authorities of the system.
type withoutItsCA struct{ *method }

func (m withoutItsCA) Resolve(_ context.Context, p *inventory.Profile) (*credentials.Access, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	config := rest.CopyConfig(m.configs[p.Status.AccessProviders[0].Cluster.Server])
	config.CAData = nil
	return credentials.FromRESTConfig(config), nil
}

func TestReasonsAndAlternatesAreServed(t *testing.T) {
	g := NewWithT(t)
	w := start(t, nil, withConnector(scene{}))
	p := profile("eu", "https://me:s3cret@eu.example")
	p.Annotations = map[string]string{inventory.AnnotationAlternates: "other/eu"}
	w.list.put(p)
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	for _, target := range []string{"/fleet", "/fleet?format=json"} {
		resp := httptest.NewRecorder()
		w.StatusHandler().ServeHTTP(resp, httptest.NewRequest(http.MethodGet, target, nil))
		g.Expect(resp.Body.String()).To(And(ContainSubstring("Engaged"), ContainSubstring("https://eu.example")))
		g.Expect(resp.Body.String()).NotTo(Or(ContainSubstring("s3cret"), ContainSubstring("me@")))
	}
	resp := httptest.NewRecorder()
	w.StatusHandler().ServeHTTP(resp, httptest.NewRequest(http.MethodGet, "/fleet", nil))
	g.Expect(resp.Body.String()).To(And(ContainSubstring("other/eu"), ContainSubstring("<td>u</td>")))
	resp = httptest.NewRecorder()
	w.StatusHandler().ServeHTTP(resp, httptest.NewRequest(http.MethodGet, "/fleet?format=json", nil))
	var body struct{ Clusters []fleet.ClusterStatus }
	g.Expect(json.Unmarshal(resp.Body.Bytes(), &body)).To(Succeed())
	g.Expect(body.Clusters).To(ConsistOf(And(
		HaveField("Reason", fleet.Engaged), HaveField("UID", "u"),
		HaveField("Alternates", []inventory.Key{{Namespace: "other", Name: "eu"}}))))
}
