// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
	"github.com/rollcall-dev/rollcall/providers/kind"
)

// A cluster is deleted and created again under its name between two looks at the engine.
func TestRecreatedUnderItsName(t *testing.T) {
	for _, test := range []struct {
		name     string
		recreate func(e *env, old, recreated *mctest.Cluster)
	}{
		{"at another port", func(e *env, old, recreated *mctest.Cluster) {
			old.Close()
			e.create("eu", recreated.Config())
		}},
		{"at the same port, with another CA", func(e *env, old, _ *mctest.Cluster) {
			old.Rebuild()
			old.RotateCA()
			old.CloseConnections()
			e.create("eu", old.Config())
		}},
		{"its old API server still responds", func(e *env, _, recreated *mctest.Cluster) {
			e.create("eu", recreated.Config())
		}},
		{"its kubeconfig comes later", func(e *env, old, recreated *mctest.Cluster) {
			old.Close()
			e.create("eu", recreated.Config())
			e.remove("clusters/eu/admin.conf")
			g := NewWithT(e.t)
			g.Eventually(func() string { return providertest.StatusOf(e.provider, "eu").AccessError }).Should(ContainSubstring("No such file"))
			e.setConfig("eu", recreated.Config())
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			member, recreated := mctest.New(t), mctest.New(t)
			e.create("eu", member.Config())
			e.Works(t, "eu", member)
			uid := member.UID()
			test.recreate(e, member, recreated)
			now := recreated
			if member.UID() != uid {
				now = member
			}
			e.Works(t, "eu", now)
			g.Expect(e.Engagements("eu")).To(Equal(2))
			providertest.AwaitReady(t, e.provider, "eu")
			g.Expect(providertest.StatusOf(e.provider, "eu").UID).To(Equal(string(now.UID())))
		})
	}
}

func TestRotation(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	member.AddToken("old", "admin")
	e.create("eu", member.ConfigFor("old"))
	e.Works(t, "eu", member)
	before := e.lists.Count()
	g.Expect(before).To(BeNumerically(">", 0))
	member.AddToken("new", "admin")
	e.setConfig("eu", member.ConfigFor("new"))
	member.RevokeToken("old")
	member.CloseConnections()
	e.Works(t, "eu", member)
	providertest.AwaitReady(t, e.provider, "eu")
	g.Expect(e.Engagements("eu")).To(Equal(1))
	g.Expect(e.lists.Count()).To(Equal(before), "nothing is listed again")
}

// A node is stopped, and started with the same port or another one.
func TestStoppedNode(t *testing.T) {
	for _, test := range []struct {
		name string
		move bool
	}{
		{"the port is the same", false},
		{"the port is another one", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			member := mctest.New(t)
			e.create("eu", member.Config())
			e.Works(t, "eu", member)
			before := e.lists.Count()
			e.set("clusters/eu/stopped", "")
			lift := member.Fault(mctest.Refuse)
			member.CloseConnections()
			g.Eventually(func() fleet.State { return providertest.StatusOf(e.provider, "eu").State }).Should(Equal(fleet.Degraded))
			g.Eventually(func() string { return providertest.StatusOf(e.provider, "eu").AccessError }).Should(
				MatchRegexp(`^kind cluster "eu": docker exec .*: Error response from daemon: container \d+ is not running$`))
			lift()
			if test.move {
				member.Move()
				e.setPort("eu", member.Config())
			}
			e.remove("clusters/eu/stopped")
			e.Works(t, "eu", member)
			providertest.AwaitReady(t, e.provider, "eu")
			g.Expect(e.Engagements("eu")).To(Equal(1))
			g.Expect(e.lists.Count()).To(Equal(before))
		})
	}
}

func TestBrokenCluster(t *testing.T) {
	for _, test := range []struct {
		name    string
		content string // of admin.conf; "" for none
		want    string
	}{
		{"without a kubeconfig", "", `kind cluster "bad": docker exec --privileged bad-control-plane cat /etc/kubernetes/admin.conf: cat: can't open '/etc/kubernetes/admin.conf': No such file or directory`},
		{"no YAML", "clusters: s3cr3t", `kind cluster "bad": the kubeconfig in the container is not valid YAML`},
		{"without a cluster", "clusters: []", `kind cluster "bad": kubeadm KUBECONFIG should have one cluster, but read 0`},
		{"a command", "clusters: [{name: a, cluster: {}}]\nusers: [{name: a, user: {exec: {command: /bin/sh, args: [s3cr3t]}}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]",
			`kind cluster "bad": context "kind-bad": user "kind-bad": exec: running a command is not allowed`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			good, mended := mctest.New(t), mctest.New(t)
			e.create("bad", mended.Config())
			e.remove("clusters/bad/admin.conf")
			if test.content != "" {
				e.set("clusters/bad/admin.conf", test.content)
			}
			e.create("good", good.Config())
			e.Works(t, "good", good)
			providertest.AwaitStatus(t, e.provider, "bad", fleet.Backoff, fleet.ResolveFailed, test.want)
			g.Eventually(func() int { return e.log.Count("bad", "ResolveFailed") }).ShouldNot(BeZero())
			g.Expect(e.log.Count("s3cr3t")).To(BeZero())
			e.setConfig("bad", mended.Config())
			e.Works(t, "bad", mended)
			g.Expect(e.Engagements("good")).To(Equal(1))
		})
	}
}

func TestOutage(t *testing.T) {
	g := NewWithT(t)
	e := &env{engine: newEngine(t, "docker")}
	e.set("down", "")
	e.start()
	listed := func(text string) func() int { return func() int { return e.log.Count(text) } }
	const failed, again = `"Cannot list kind clusters, keeping the clusters as they are" "error"="docker ps: Cannot connect to the Docker daemon`, "kind clusters can be listed again"
	g.Eventually(listed(failed)).Should(Equal(1))
	rounds := e.commands("ps")
	g.Eventually(func() int { return e.commands("ps") }).Should(BeNumerically(">", rounds+5), "it is tried again")
	g.Expect(e.log.Count(failed)).To(Equal(1), "each reason is logged once")

	member, later := mctest.New(t), mctest.New(t)
	e.create("eu", member.Config())
	e.remove("down")
	e.Works(t, "eu", member)
	g.Expect(e.log.Count(again)).To(Equal(1))

	e.set("down", "")
	g.Eventually(listed(failed)).Should(Equal(2))
	e.delete("eu")
	e.create("later", later.Config())
	e.Works(t, "eu", member)
	providertest.AwaitReady(t, e.provider, "eu")
	e.remove("down")
	e.Works(t, "later", later)
	g.Eventually(func() bool { return e.isGone("eu") }).Should(BeTrue())
	g.Expect(e.log.Count(failed)).To(Equal(2))
}

func TestNoEngine(t *testing.T) {
	g := NewWithT(t)
	e := &env{engine: newEngine(t, "docker")}
	t.Setenv("PATH", t.TempDir())
	e.start()
	g.Eventually(func() int {
		return e.log.Count("no container engine found: install Docker, nerdctl or Podman, or set KIND_EXPERIMENTAL_PROVIDER")
	}).Should(Equal(1))
	start := time.Now()
	e.stop()
	g.Expect(time.Since(start)).To(BeNumerically("<", 5*time.Second))
}

// The warning of kind's library about Podman is logged once, also while Podman fails.
func TestWarningsAreLoggedOnce(t *testing.T) {
	g := NewWithT(t)
	e := &env{engine: newEngine(t, "podman")}
	e.set("down", "")
	e.start()
	g.Eventually(func() int { return e.commands("ps -a --no-trunc") }).Should(BeNumerically(">", 20))
	g.Expect(e.log.Count("enabling experimental podman provider")).To(Equal(1))
	g.Expect(e.log.Count("Cannot list kind clusters")).To(Equal(1))
	e.remove("down")
	g.Eventually(func() int { return e.log.Count("kind clusters can be listed again") }).Should(Equal(1))
}

// A kubeconfig that cannot be read because the engine ends is no error of its cluster.
func TestOutageDuringARead(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	e.create("eu", member.Config())
	e.Works(t, "eu", member)
	reads := e.commands("exec")
	e.set("clusters/eu/hang", "")
	e.set("clusters/eu/id", fmt.Sprintf("%064d", 99))
	g.Eventually(func() int { return e.commands("exec") }).Should(Equal(reads + 1))
	e.set("clusters/eu/stopped", "") // the command fails when it goes on
	e.set("down", "")
	g.Eventually(func() int { return e.log.Count("Cannot list kind clusters") }).Should(Equal(1))
	e.remove("clusters/eu/hang")
	looks := e.commands("ps -a --no-trunc")
	g.Eventually(func() int { return e.commands("ps -a --no-trunc") }).Should(BeNumerically(">", looks+5))
	e.remove("clusters/eu/stopped")
	e.remove("down")
	g.Eventually(func() int { return e.commands("exec") }).Should(BeNumerically(">", reads+1))
	e.Works(t, "eu", member)
	providertest.AwaitReady(t, e.provider, "eu")
	g.Expect(e.log.Count("keeping the current connection")).To(BeZero())
	g.Expect(e.Engagements("eu")).To(Equal(1))
}

// Commands that hang delay neither other clusters nor the end.
func TestHangingCommands(t *testing.T) {
	timeout := func(o *kind.Options) { o.Timeout = 300 * time.Millisecond }
	t.Run("one cluster", func(t *testing.T) {
		g := NewWithT(t)
		e := newEnv(t, timeout)
		hanging, member := mctest.New(t), mctest.New(t)
		e.set("clusters/hanging/hang", "")
		e.create("hanging", hanging.Config())
		e.create("eu", member.Config())
		e.Works(t, "eu", member)
		providertest.AwaitStatus(t, e.provider, "hanging", fleet.Backoff, fleet.ResolveFailed, "reading the kubeconfig did not end within 300ms")
		const read = "exec --privileged hanging-"
		rounds := e.commands("ps -a --no-trunc")
		g.Eventually(func() int { return e.commands("ps -a --no-trunc") }).Should(BeNumerically(">", rounds+20))
		g.Expect(e.commands(read)).To(Equal(1), "one at a time")
		e.remove("clusters/hanging/hang")
		e.Works(t, "hanging", hanging)

		e.set("clusters/hanging/hang", "")
		e.set("clusters/hanging/id", fmt.Sprintf("%064d", 99))
		g.Eventually(func() int { return e.commands(read) }).Should(BeNumerically(">", 1))
		start := time.Now()
		e.stop()
		g.Expect(time.Since(start)).To(BeNumerically("<", 5*time.Second))
		e.remove("clusters/hanging/hang") // or goleak complains
	})
	t.Run("the engine", func(t *testing.T) {
		g := NewWithT(t)
		e := newEnv(t, timeout)
		member := mctest.New(t)
		e.create("eu", member.Config())
		e.Works(t, "eu", member)
		e.set("hang", "")
		g.Eventually(func() int {
			return e.log.Count("docker ps did not end within 300ms: check whether the container engine responds")
		}).Should(Equal(1))
		e.Works(t, "eu", member)
		start := time.Now()
		e.stop()
		g.Expect(time.Since(start)).To(BeNumerically("<", 5*time.Second))
		e.remove("hang")
	})
}

// While nothing changes, a look at the engine is one command.
func TestCostOfLooking(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	e.create("eu", member.Config())
	e.Works(t, "eu", member)
	g.Expect(e.commands("exec")).To(Equal(1))
	all, looks := e.commands(""), e.commands("ps -a --no-trunc")
	g.Eventually(func() int { return e.commands("ps -a --no-trunc") }).Should(BeNumerically(">", looks+20))
	all, looks = e.commands("")-all, e.commands("ps -a --no-trunc")-looks
	g.Expect(all).To(BeNumerically("~", looks, 1))
}
