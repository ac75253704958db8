// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/clients"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// TestOneBadCluster checks that a cluster that cannot be used delays its own callers
// only, and these only until their context ends.
func TestOneBadCluster(t *testing.T) {
	for _, test := range []struct {
		name   string
		breaks func(e *env, c *mctest.Cluster)
		mends  func(e *env, c *mctest.Cluster)
		err    error // of the first call, nil for any
	}{
		{"it hangs", func(_ *env, c *mctest.Cluster) { c.Fault(mctest.Hang) }, nil, context.DeadlineExceeded},
		{"it drops all packets", func(_ *env, c *mctest.Cluster) { c.Fault(mctest.Freeze) }, nil, context.DeadlineExceeded},
		{"it refuses connections", func(_ *env, c *mctest.Cluster) { c.Fault(mctest.Refuse) }, nil, nil},
		{"it refuses the credentials", func(_ *env, c *mctest.Cluster) { c.Fault(mctest.Unauthorized) }, nil, nil},
		{"its method hangs", func(e *env, c *mctest.Cluster) { e.hang(c.Name(), true) }, func(e *env, c *mctest.Cluster) {
			e.hang(c.Name(), false)
			e.put(profile(c.Name(), c.Name()))
			e.notify()
		}, context.DeadlineExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			f := mctest.NewFleet(t, 3)
			bad, good, late := f.Cluster(0), f.Cluster(1), f.Cluster(2)
			e := newEnv(t, nil, f.Clusters()...)
			held := e.client(good)
			test.breaks(e, bad)

			// The first caller gives up, another one stays.
			first, stays := soon(t), make(chan error, 1)
			_, err := e.Client(first, ref(bad.Name()))
			g.Expect(err).To(HaveOccurred())
			if test.err != nil {
				g.Expect(err).To(MatchError(test.err))
				go func() {
					_, err := e.Client(t.Context(), ref(bad.Name()))
					stays <- err
				}()
			} else {
				stays <- nil
			}
			g.Expect(read(t.Context(), held)).To(Succeed())
			g.Expect(read(t.Context(), e.client(late))).To(Succeed(), "others connect")

			bad.Clear()
			if test.mends != nil {
				test.mends(e, bad)
			}
			g.Eventually(stays).Should(Receive(BeNil()), "the attempt goes on after the first caller has gone")
			g.Eventually(func() error {
				_, err := e.Client(t.Context(), ref(bad.Name()))
				return err
			}).Should(Succeed())
			g.Expect(read(t.Context(), e.client(bad))).To(Succeed())
		})
	}
}

// TestChangeWhileConnecting checks that a caller that waits for a cluster that hangs
// goes on when its profile changes.
func TestChangeWhileConnecting(t *testing.T) {
	toNext := func(e *env, c, next *mctest.Cluster) {
		e.set("next", next.Config())
		e.put(profile(c.Name(), "next"))
	}
	remove := func(e *env, c, _ *mctest.Cluster) { e.remove(c.Name()) }
	hangs := func(_ *env, c *mctest.Cluster) { c.Fault(mctest.Hang) }
	methodHangs := func(e *env, c *mctest.Cluster) { e.hang(c.Name(), true) }
	for _, test := range []struct {
		name   string
		breaks func(e *env, c *mctest.Cluster)
		change func(e *env, c, next *mctest.Cluster)
		err    error
	}{
		{"the cluster hangs, another endpoint", hangs, toNext, nil},
		{"the cluster hangs, removed", hangs, remove, clients.ErrProfileNotFound},
		{"the method hangs, another endpoint", methodHangs, toNext, nil},
		{"the method hangs, removed", methodHangs, remove, clients.ErrProfileNotFound},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			f := mctest.NewFleet(t, 2)
			c, next := f.Cluster(0), f.Cluster(1)
			e := newEnv(t, nil, c)
			test.breaks(e, c)
			waiting := make(chan error)
			go func() {
				member, err := e.Client(t.Context(), ref(c.Name()))
				if err == nil {
					err = read(t.Context(), member)
				}
				waiting <- err
			}()
			g.Eventually(func() int { return c.Requests("", "") + e.count(c.Name()) }).Should(BeNumerically(">=", 1))
			test.change(e, c, next)
			if test.err != nil {
				g.Eventually(waiting).WithTimeout(10 * time.Second).Should(Receive(MatchError(test.err)))
			} else {
				g.Eventually(waiting).WithTimeout(10 * time.Second).Should(Receive(BeNil()))
				g.Expect(next.Requests("get", "namespaces")).To(Equal(1))
			}
			g.Eventually(c.Connections).Should(BeZero())
		})
	}
}

func TestHeldClientOfHangingCluster(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	e := newEnv(t, nil, c)
	held := e.client(c)
	c.Fault(mctest.Hang)
	g.Expect(read(soon(t), held)).To(MatchError(context.DeadlineExceeded))
	_, err := e.Client(t.Context(), ref(c.Name()))
	g.Expect(err).NotTo(HaveOccurred(), "a connected cluster is sent no request")
	c.Clear()
	g.Expect(read(t.Context(), held)).To(Succeed())
}

func TestErrorsOfUnreachableClusters(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	refuses, denies := f.Cluster(0), f.Cluster(1)
	e := newEnv(t, nil, f.Clusters()...)
	refuses.Fault(mctest.Refuse)
	denies.Fault(mctest.Unauthorized)
	_, err := e.Client(t.Context(), ref(refuses.Name()))
	g.Expect(err).To(MatchError(And(ContainSubstring("ClusterProfile fleet/"+refuses.Name()), ContainSubstring("connection refused"))))
	refuses.ResetRequests()
	_, again := e.Client(t.Context(), ref(refuses.Name()))
	g.Expect(again).To(MatchError(err.Error()), "the last error, during the backoff")
	_, err = e.Client(t.Context(), ref(denies.Name()))
	g.Expect(err).To(Satisfy(apierrors.IsUnauthorized))
	g.Expect(denies.Requests("get", "/api")).To(BeNumerically("<=", 1))
	_, err = e.Client(t.Context(), ref(denies.Name()))
	g.Expect(err).To(HaveOccurred())
	g.Expect(denies.Requests("get", "/api")).To(BeNumerically("<=", 1), "not requested again during the backoff")
}

// tokens is a plugin that gives each cluster the same token, or hangs.
type tokens struct {
	mu    sync.Mutex // guards what follows
	runs  int
	token string
	hangs bool
}

func (p *tokens) Name() string    { return "tokens" }
func (p *tokens) Version() string { return "v1" }

func (p *tokens) set(token string, hangs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token, p.hangs = token, hangs
}

func (p *tokens) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs
}

func (p *tokens) Credential(ctx context.Context, _ plugin.Request) (*plugin.Credential, error) {
	p.mu.Lock()
	p.runs++
	token, hangs := p.token, p.hangs
	p.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if token == "" {
		return nil, errors.New("no token")
	}
	return &plugin.Credential{Token: token}, nil
}

// newPluginEnv returns an env with a Resolver that runs the plugin for profiles of
// putWithPlugin, and the Clients of another program part with the same Resolver.
func newPluginEnv(t *testing.T, p *tokens) (e, other *env) {
	t.Helper()
	resolver, err := credentials.New(credentials.Options{
		Plugins: []func() plugin.Plugin{func() plugin.Plugin { return p }},
		Providers: []providerfile.Provider{{
			Name: "plugin", Rollcall: providerfile.Extensions{InProcess: "tokens"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(resolver.Close)
	with := func(o *clients.Options) { o.Credentials = &either{o.Credentials.(*inventoryAndCredentials), resolver} }
	return newEnv(t, with), newEnv(t, with)
}

// either is the Method of profiles with the plugin and of others.
type either struct {
	*inventoryAndCredentials
	resolver *credentials.Resolver
}

func (e *either) Resolve(ctx context.Context, p *inventory.Profile) (*credentials.Access, error) {
	if p.Status.AccessProviders[0].Name == "plugin" {
		return e.resolver.Resolve(ctx, p)
	}
	return e.inventoryAndCredentials.Resolve(ctx, p)
}

func (e *env) putWithPlugin(c *mctest.Cluster) {
	p := profile(c.Name(), c.Config().Host)
	p.Status.AccessProviders[0].Name = "plugin"
	p.Status.AccessProviders[0].Cluster.CertificateAuthorityData = c.Config().CAData
	e.put(p)
}

func TestHangingPlugin(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	c, good := f.Cluster(0), f.Cluster(1)
	p := &tokens{hangs: true}
	e, _ := newPluginEnv(t, p)
	e.putWithPlugin(c)
	e.set(good.Name(), good.Config())
	e.put(profile(good.Name(), good.Name()))
	_, err := e.Client(soon(t), ref(c.Name()))
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(read(t.Context(), e.client(good))).To(Succeed())
}

func TestPlugin(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	c, d := f.Cluster(0), f.Cluster(1)
	for _, member := range f.Clusters() {
		member.AddToken("first", "user")
	}
	p := &tokens{}
	e, other := newPluginEnv(t, p)
	e.putWithPlugin(c)
	e.putWithPlugin(d)
	other.putWithPlugin(c)
	for range 10 {
		_, err := e.Client(t.Context(), ref(c.Name()))
		g.Expect(err).To(MatchError(credentials.ErrPluginFailed))
	}
	g.Expect(p.count()).To(BeNumerically("<=", 2), "not once per call")

	p.set("first", false)
	g.Eventually(func() error {
		_, err := e.Client(t.Context(), ref(c.Name()))
		return err
	}).Should(Succeed())
	running := p.count()
	held := e.client(c)
	g.Expect(read(t.Context(), held)).To(Succeed())
	g.Expect(read(t.Context(), other.client(c))).To(Succeed())
	g.Expect(p.count()).To(Equal(running), "all users of the Resolver share the credential")

	for _, member := range f.Clusters() {
		member.AddToken("second", "user")
		member.RevokeToken("first")
	}
	p.set("second", false)
	g.Expect(read(t.Context(), held)).To(Succeed(), "the plugin runs again after a 401")
	g.Expect(read(t.Context(), e.client(d))).To(Succeed())
}

func TestShutdown(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 4)
	e := newEnv(t, nil, f.Clusters()...)
	connecting, hangs, watched, resolving := f.Cluster(0), f.Cluster(1), f.Cluster(2), f.Cluster(3)
	held := e.client(hangs)
	hangs.Fault(mctest.Hang)
	connecting.Fault(mctest.Hang)
	e.hang(resolving.Name(), true)
	watching, err := e.client(watched).Watch(t.Context(), &corev1.ConfigMapList{})
	g.Expect(err).NotTo(HaveOccurred())
	defer watching.Stop()
	ended := make(chan error, 3)
	go func() { ended <- read(t.Context(), held) }()
	for _, c := range []*mctest.Cluster{connecting, resolving} {
		go func() {
			_, err := e.Client(t.Context(), ref(c.Name()))
			ended <- err
		}()
	}
	g.Eventually(func() int { return hangs.Requests("get", "namespaces") }).Should(Equal(1))
	g.Eventually(func() int { return connecting.Requests("", "") }).Should(Equal(2))
	g.Eventually(func() int { return e.count(resolving.Name()) }).Should(Equal(1))
	began := time.Now()
	e.stop()
	g.Expect(time.Since(began)).To(BeNumerically("<", 10*time.Second), "it does not wait for time limits")
	for range cap(ended) {
		g.Eventually(ended).Should(Receive(MatchError(clients.ErrStopped)))
	}
	g.Eventually(watching.ResultChan()).Should(BeClosed())
	g.Expect(read(t.Context(), held)).To(MatchError(clients.ErrStopped))
	for _, c := range f.Clusters() {
		g.Eventually(c.Connections).Should(BeZero())
	}
}
