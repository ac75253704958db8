// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	"github.com/rollcall-dev/rollcall/providers/kind"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// output is what a program prints.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// The sample program, as users start it, with two clusters.
func TestSample(t *testing.T) {
	needEngine(t)
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(mctest.Timeout)
	image, program := importImage(t), filepath.Join(build(t, "../../examples/kind"), "kind")
	alpha, beta := create(t, image, "alpha"), create(t, image, "beta")
	names, err := kindcluster.NewProvider().List()
	g.Expect(names, err).To(ContainElements("alpha", "beta"), "kind's library lists them")
	alpha.createConfigMap("hello-alpha")
	beta.createConfigMap("hello-beta")

	local := filepath.Join(t.TempDir(), "config")
	g.Expect(os.WriteFile(local, alpha.kubeconfig(alpha.config.Host), 0o600)).To(Succeed())
	command, out := exec.CommandContext(t.Context(), program), &output{}
	command.Env = append(os.Environ(), "KUBECONFIG="+local)
	command.Stdout, command.Stderr = out, out
	g.Expect(command.Start()).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	g.Eventually(out.String).Should(And(
		ContainSubstring(`ConfigMap default/hello-alpha in cluster "alpha"`),
		ContainSubstring(`ConfigMap default/hello-beta in cluster "beta"`)))
	beta.createConfigMap("later")
	g.Eventually(out.String).Should(ContainSubstring(`ConfigMap default/later in cluster "beta"`))
	g.Expect(command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	g.Eventually(ended).Should(Receive(BeNil()), "it ends without an error")
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "ConfigMap default/") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// env is a manager with the provider.
type env struct {
	t          *testing.T
	provider   *kind.Provider
	mu         sync.Mutex // guards what follows
	reconciled map[string]bool
	engaged    map[multicluster.ClusterName]int
}

// newEnv starts a manager with a provider of clusters with the prefix "fleet-".
func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{t: t, reconciled: map[string]bool{}, engaged: map[multicluster.ClusterName]int{}}
	e.provider = kind.New(kind.Options{Prefix: "fleet-", Connection: fleet.ConnectionOptions{
		MaxBackoff: time.Second, Probe: fleet.ProbeOptions{Interval: 500 * time.Millisecond, Timeout: time.Second},
	}})
	mgr, err := mcmanager.New(&rest.Config{}, e.provider, mctest.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(e); err != nil {
		t.Fatal(err)
	}
	err = mcbuilder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.reconciled[req.ClusterName.String()+" "+req.Name] = true
			return ctrl.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	mctest.StartManager(t, mgr)
	return e
}

// Engage implements multicluster.Aware.
func (e *env) Engage(_ context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.engaged[name]++
	return nil
}

// Start implements manager.Runnable.
func (e *env) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (e *env) engagements(name multicluster.ClusterName) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.engaged[name]
}

// status returns the status of a cluster.
func (e *env) status(name multicluster.ClusterName) fleet.ClusterStatus {
	for _, status := range e.provider.Status() {
		if status.Name == name {
			return status
		}
	}
	return fleet.ClusterStatus{}
}

// awaitState waits until a cluster is in a state, with a text in its status.
func (e *env) awaitState(name multicluster.ClusterName, state fleet.State, text string) {
	e.t.Helper()
	start := time.Now()
	for {
		status := e.status(name)
		if status.State == state && strings.Contains(status.String(), text) {
			e.t.Logf("%s is %s after %v", name, state, time.Since(start).Round(10*time.Millisecond))
			return
		}
		if time.Since(start) > mctest.Timeout {
			e.t.Fatalf("cluster %s: %v, want %s %s", name, status, state, text)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// works creates a ConfigMap, and waits until it is reconciled.
func (e *env) works(n *node, cluster, configMap string) {
	e.t.Helper()
	n.createConfigMap(configMap)
	NewWithT(e.t).Eventually(func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.reconciled[cluster+" "+configMap]
	}).WithTimeout(mctest.Timeout).Should(BeTrue(), "%s of %s is reconciled", configMap, cluster)
}

func TestClusters(t *testing.T) {
	needEngine(t)
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(mctest.Timeout)
	image := importImage(t)
	e := newEnv(t)
	alpha := create(t, image, "fleet-alpha")
	e.awaitState("fleet-alpha", fleet.Ready, "")
	e.works(alpha, "fleet-alpha", "first")

	// A broken cluster, and one of another prefix.
	docker(t, nil, "create", "--name", "fleet-broken-control-plane", "--label", "io.x-k8s.kind.cluster=fleet-broken",
		"--label", "io.x-k8s.kind.role=control-plane", image)
	t.Cleanup((&node{t: t, name: "fleet-broken-control-plane"}).remove)
	e.awaitState("fleet-broken", fleet.Backoff, "is not running")
	beta := create(t, image, "fleet-beta")
	start := time.Now()
	e.awaitState("fleet-beta", fleet.Ready, "")
	g.Expect(time.Since(start)).To(BeNumerically("<", 2*time.Second), "after its API server responds")
	e.works(beta, "fleet-beta", "first")
	g.Expect(e.provider.ClusterNames()).To(ConsistOf(multicluster.ClusterName("fleet-alpha"), multicluster.ClusterName("fleet-beta")))

	// A node is stopped, and started again.
	uid := beta.uid()
	beta.stop()
	e.awaitState("fleet-beta", fleet.Degraded, "is not running")
	e.works(alpha, "fleet-alpha", "while-beta-is-stopped")
	beta.start()
	e.awaitState("fleet-beta", fleet.Ready, "")
	e.works(beta, "fleet-beta", "after-the-stop")
	g.Expect(e.engagements("fleet-beta")).To(Equal(1))
	g.Expect(e.status("fleet-beta").UID).To(Equal(uid))

	// A cluster is deleted, and created again with another CA.
	beta.remove()
	recreated := create(t, image, "fleet-beta")
	e.works(recreated, "fleet-beta", "recreated")
	g.Expect(e.engagements("fleet-beta")).To(Equal(2))
	g.Expect(recreated.uid()).NotTo(Equal(uid))
	g.Eventually(func() string { return e.status("fleet-beta").UID }).Should(Equal(recreated.uid()))
	cl, err := e.provider.Get(t.Context(), "fleet-beta")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cl.GetConfig().CAData).To(Equal(recreated.authority.pem))

	recreated.remove()
	g.Eventually(func() fleet.State { return e.status("fleet-beta").State }).Should(BeEmpty())
	e.works(alpha, "fleet-alpha", "last")
	g.Expect(e.engagements("fleet-alpha")).To(Equal(1))
}

// The engine is gone for a while.
func TestOutage(t *testing.T) {
	needEngine(t)
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(mctest.Timeout)
	image := importImage(t)
	proxy := newProxy(t)
	e := newEnv(t)
	alpha := create(t, image, "fleet-alpha")
	e.works(alpha, "fleet-alpha", "first")
	proxy.close()
	e.works(alpha, "fleet-alpha", "during-the-outage")
	g.Consistently(func() fleet.State { return e.status("fleet-alpha").State }).WithTimeout(3 * time.Second).Should(Equal(fleet.Ready))
	g.Expect(e.status("fleet-alpha").AccessError).To(BeEmpty())
	proxy.open()
	beta := create(t, image, "fleet-beta")
	e.works(beta, "fleet-beta", "first")
	g.Expect(e.engagements("fleet-alpha")).To(Equal(1))
}

// proxy is a socket that leads to the engine.
type proxy struct {
	t        *testing.T
	engine   string // path of its socket
	path     string
	listener net.Listener
}

// newProxy has docker use a proxy for the rest of the test.
func newProxy(t *testing.T) *proxy {
	t.Helper()
	host, err := dockerFails(t.Context(), nil, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
	if variable := os.Getenv("DOCKER_HOST"); variable != "" {
		host, err = variable, nil
	}
	engine, isSocket := strings.CutPrefix(host, "unix://")
	if err != nil || !isSocket {
		t.Skipf("the engine has no socket on this machine: %q %v", host, err)
	}
	p := &proxy{t: t, engine: engine, path: filepath.Join(t.TempDir(), "s")}
	p.open()
	t.Setenv("DOCKER_HOST", "unix://"+p.path)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) open() {
	p.t.Helper()
	listener, err := net.Listen("unix", p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.listener = listener
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.forward(client)
		}
	}()
}

func (p *proxy) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", p.engine)
	if err != nil {
		return
	}
	defer server.Close()
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{client: server, server: client} {
		both.Go(func() {
			_, _ = io.Copy(to, from)
			_ = to.(*net.UnixConn).CloseWrite()
		})
	}
	both.Wait()
}

func (p *proxy) close() {
	if err := p.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		p.t.Error(fmt.Errorf("closing the proxy: %w", err))
	}
}
