// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/file"
	"github.com/rollcall-dev/rollcall/providers/internal/files"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
)

// TestRotation replaces each kind of credential. The old one is revoked as soon as the
// new one is used.
func TestRotation(t *testing.T) {
	for _, test := range []struct {
		name string
		// set makes the user of the n-th credential, and writes the files that it names.
		set func(e *env, member *mctest.Cluster, n int) *clientcmdapi.AuthInfo
	}{
		{"token", func(_ *env, _ *mctest.Cluster, n int) *clientcmdapi.AuthInfo {
			return &clientcmdapi.AuthInfo{Token: fmt.Sprint("token-", n)}
		}},
		{"token file", func(e *env, _ *mctest.Cluster, n int) *clientcmdapi.AuthInfo {
			e.write("token", fmt.Sprint("token-", n, "\n"))
			return &clientcmdapi.AuthInfo{TokenFile: "token"}
		}},
		{"token file behind a link", func(e *env, _ *mctest.Cluster, n int) *clientcmdapi.AuthInfo {
			mount := func(path string) string { return filepath.Join(e.dir, "mount", path) }
			version := fmt.Sprintf("..%d", n)
			if err := os.MkdirAll(mount(version), 0o700); err != nil {
				e.t.Fatal(err)
			}
			e.write("mount/"+version+"/token", fmt.Sprint("token-", n))
			_ = os.Remove(mount("..tmp"))
			if err := os.Symlink(version, mount("..tmp")); err != nil {
				e.t.Fatal(err)
			}
			if err := os.Rename(mount("..tmp"), mount("..data")); err != nil {
				e.t.Fatal(err)
			}
			_ = os.Symlink("..data/token", mount("token"))
			return &clientcmdapi.AuthInfo{TokenFile: mount("token")}
		}},
		{"certificate", func(_ *env, member *mctest.Cluster, n int) *clientcmdapi.AuthInfo {
			certificate, key := member.ClientCertificate(fmt.Sprint("user-", n))
			return &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
		}},
		{"certificate in files", func(e *env, member *mctest.Cluster, n int) *clientcmdapi.AuthInfo {
			certificate, key := member.ClientCertificate(fmt.Sprint("user-", n))
			e.write("tls.crt", string(certificate))
			e.write("tls.key", string(key))
			return &clientcmdapi.AuthInfo{ClientCertificate: "tls.crt", ClientKey: "tls.key"}
		}},
		{"exec", func(e *env, _ *mctest.Cluster, n int) *clientcmdapi.AuthInfo {
			e.write("plugin", fmt.Sprintf("#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\","+
				"\"kind\":\"ExecCredential\",\"status\":{\"token\":\"token-%d\"}}'\n", n))
			return &clientcmdapi.AuthInfo{Impersonate: fmt.Sprint("user-", n), Exec: &clientcmdapi.ExecConfig{
				APIVersion: "client.authentication.k8s.io/v1", Command: "./plugin",
				Args: []string{fmt.Sprint(n)}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
			}}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			member := mctest.New(t)
			set := func(n int) {
				t.Helper()
				member.AddToken(fmt.Sprint("token-", n), "user")
				config := providertest.Config(member.Config())
				config.AuthInfos["main"] = test.set(e, member, n)
				e.write("a.kubeconfig", string(providertest.Encode(t, config)))
			}
			name := e.name("a.kubeconfig", "main")
			set(0)
			e.Works(t, name, member)
			before := e.lists.Count()
			g.Expect(before).To(BeNumerically(">", 0))
			for n := 1; n <= 3; n++ {
				start := time.Now()
				set(n)
				g.Eventually(func() int { return e.log.Count(`"Switched cluster connection"`) }).WithPolling(time.Millisecond).Should(Equal(n))
				t.Logf("in use after %s", time.Since(start))
				member.RevokeToken(fmt.Sprint("token-", n-1))
				e.Works(t, name, member)
			}
			g.Expect(e.Engagements(name)).To(Equal(1))
			g.Expect(e.lists.Count()).To(Equal(before), "nothing is listed again")
			g.Expect(e.log.Count("keeping the current connection")).To(BeZero())
			g.Expect(e.log.Count("token-")).To(BeZero(), "no token in the log")
		})
	}
}

func TestEndpointChanges(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*mctest.Cluster)
	}{
		{"another address", (*mctest.Cluster).Move},
		{"another CA", func(c *mctest.Cluster) {
			c.RotateCA()
			c.CloseConnections()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			member := mctest.New(t)
			write := func() {
				t.Helper()
				config := providertest.Config(member.Config())
				e.write("ca.crt", string(config.Clusters["main"].CertificateAuthorityData))
				config.Clusters["main"].CertificateAuthorityData, config.Clusters["main"].CertificateAuthority = nil, "ca.crt"
				e.write("a.kubeconfig", string(providertest.Encode(t, config)))
			}
			write()
			name := e.name("a.kubeconfig", "main")
			e.Works(t, name, member)
			before := e.lists.Count()
			g.Expect(before).To(BeNumerically(">", 0))
			test.change(member)
			write()
			e.Works(t, name, member)
			g.Expect(e.Engagements(name)).To(Equal(1))
			g.Expect(e.lists.Count()).To(Equal(before), "nothing is listed again")
		})
	}
}

// Another cluster under the same name is engaged again.
func TestAnotherClusterInTheContext(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	one, other := mctest.New(t), mctest.New(t)
	name := e.name("a.kubeconfig", "main")
	e.create("a.kubeconfig", one.Config())
	e.Works(t, name, one)
	e.create("a.kubeconfig", other.Config())
	e.Works(t, name, other)
	g.Expect(e.Engagements(name)).To(Equal(2))
	g.Eventually(one.Connections).Should(BeZero())
}

func TestBrokenUpdateKeepsCluster(t *testing.T) {
	for _, test := range []struct {
		name   string
		broken string
		want   string
	}{
		{"no YAML", "a: [", "a.kubeconfig: is not valid YAML"},
		{"an empty file", "", "a.kubeconfig: is empty"},
		{"an invalid user", "contexts: [{name: main, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: x}}]\nusers: [{name: u, user: {token: [s3cr3t]}}]",
			`context "main": user "u": token: has the wrong type`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			member, other := mctest.New(t), mctest.New(t)
			e.create("a.kubeconfig", member.Config())
			e.create("b.kubeconfig", other.Config())
			name := e.name("a.kubeconfig", "main")
			e.Works(t, name, member)
			e.write("a.kubeconfig", test.broken)
			providertest.AwaitStatus(t, e.provider, name, fleet.Ready, fleet.AccessUpdateFailed, test.want)
			providertest.AwaitBroken(t, 1, 0)
			g.Expect(e.log.Count(`"Cannot use the cluster's new access, keeping the current connection"`, name.String())).NotTo(BeZero())
			e.Works(t, name, member)
			e.Works(t, e.name("b.kubeconfig", "main"), other)
			g.Expect(e.provider.Status()).To(HaveLen(2))
			e.create("a.kubeconfig", member.Config())
			providertest.AwaitReady(t, e.provider, name)
			g.Expect(e.Engagements(name)).To(Equal(1))
			g.Expect(e.log.Count("s3cr3t")).To(BeZero())
		})
	}
}

// A slow writer must not remove the contexts of the second half.
func TestHalfWrittenFile(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	eu, us := mctest.New(t), mctest.New(t)
	text := string(providertest.Encode(t, merged(map[string]*clientcmdapi.Config{
		"eu": providertest.Config(eu.Config()), "us": providertest.Config(us.Config()),
	})))
	e.write("a.kubeconfig", text)
	e.Works(t, e.name("a.kubeconfig", "eu"), eu)
	e.Works(t, e.name("a.kubeconfig", "us"), us)
	f, err := os.OpenFile(filepath.Join(e.dir, "a.kubeconfig"), os.O_WRONLY|os.O_TRUNC, 0)
	g.Expect(err).NotTo(HaveOccurred())
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		_, err := f.WriteString(line)
		g.Expect(err).NotTo(HaveOccurred())
		if i%(len(lines)/4) == 0 {
			e.Works(t, e.name("a.kubeconfig", "us"), us) // takes some time
		}
	}
	g.Expect(f.Close()).To(Succeed())
	e.create("b.kubeconfig", eu.Config())
	providertest.AwaitReady(t, e.provider, e.name("b.kubeconfig", "main")) // the files have been read
	for _, name := range []string{"eu", "us"} {
		g.Expect(e.Engagements(e.name("a.kubeconfig", name))).To(Equal(1))
	}
	g.Expect(e.log.Count("keeping the current connection")).To(BeZero())
}

// A certificate and its key are not replaced at the same time.
func TestHalfReplacedCertificate(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	certificate, key := member.ClientCertificate("one")
	e.write("tls.crt", string(certificate))
	e.write("tls.key", string(key))
	config := providertest.Config(member.Config())
	config.AuthInfos["main"] = &clientcmdapi.AuthInfo{ClientCertificate: "tls.crt", ClientKey: "tls.key"}
	e.write("a.kubeconfig", string(providertest.Encode(t, config)))
	name := e.name("a.kubeconfig", "main")
	e.Works(t, name, member)
	certificate, key = member.ClientCertificate("two")
	e.write("tls.crt", string(certificate))
	for start := time.Now(); time.Since(start) < 2*files.SettleTime; {
		e.write("tls.key", fmt.Sprintf("%s%d", key, time.Since(start))) // a slow writer
		e.Works(t, name, member)
	}
	e.write("tls.key", string(key))
	g.Eventually(func() int { return e.log.Count(`"Switched cluster connection"`) }).Should(Equal(1))
	e.Works(t, name, member)
	g.Expect(e.log.Count("keeping the current connection")).To(BeZero())
}

func TestBrokenFileHurtsOnlyItself(t *testing.T) {
	e := newEnv(t)
	member, later := mctest.New(t), mctest.New(t)
	e.write("bad.kubeconfig", "users: s3cr3t")
	config := merged(map[string]*clientcmdapi.Config{"good": providertest.Config(member.Config()), "bad": providertest.Config(member.Config())})
	config.Clusters["bad"].CertificateAuthorityData = []byte("none")
	e.write("a.kubeconfig", string(providertest.Encode(t, config)))
	e.Works(t, e.name("a.kubeconfig", "good"), member)
	providertest.AwaitStatus(t, e.provider, e.name("a.kubeconfig", "bad"), fleet.Backoff, fleet.ResolveFailed, "has no certificate in PEM format")
	path := filepath.Join(e.dir, "bad.kubeconfig")
	broken := e.name("bad.kubeconfig", "")[:len(path)]
	providertest.AwaitStatus(t, e.provider, broken, fleet.Backoff, fleet.ResolveFailed, "bad.kubeconfig: users: has the wrong type")
	providertest.AwaitBroken(t, 0, 2)
	e.create("bad.kubeconfig", later.Config())
	e.Works(t, e.name("bad.kubeconfig", "main"), later)
	NewWithT(t).Eventually(e.isGone(broken)).Should(BeTrue())
}

// TestOutage makes the folder, then the file unreadable, in a way that affects root too.
func TestOutage(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t, func(o *file.Options) { o.KubeconfigDirs[0] = filepath.Join(o.KubeconfigDirs[0], "clusters") })
	member := mctest.New(t)
	g.Expect(os.Mkdir(filepath.Join(e.dir, "clusters"), 0o700)).To(Succeed()) // it appears later
	e.create("clusters/a.kubeconfig", member.Config())
	name := e.name("clusters/a.kubeconfig", "main")
	e.Works(t, name, member)
	dir, aside := filepath.Join(e.dir, "clusters"), filepath.Join(e.dir, "aside")
	g.Expect(os.Rename(dir, aside)).To(Succeed())
	g.Expect(os.Symlink("clusters", dir)).To(Succeed()) // a loop
	g.Eventually(func() int { return e.log.Count("Cannot read a folder with kubeconfigs") }).Should(Equal(1))
	providertest.AwaitStatus(t, e.provider, name, fleet.Ready, fleet.AccessUpdateFailed, "too many levels")
	e.Works(t, name, member)
	g.Expect(os.Remove(dir)).To(Succeed())
	g.Expect(os.Rename(aside, dir)).To(Succeed())
	g.Eventually(func() int { return e.log.Count("Folder with kubeconfigs can be read again") }).Should(Equal(1))
	providertest.AwaitReady(t, e.provider, name)

	path := filepath.Join(dir, "a.kubeconfig")
	g.Expect(os.Rename(path, aside)).To(Succeed())
	g.Expect(os.Symlink("a.kubeconfig", path)).To(Succeed())
	providertest.AwaitStatus(t, e.provider, name, fleet.Ready, fleet.AccessUpdateFailed, "too many levels")
	e.Works(t, name, member)
	g.Expect(os.Rename(aside, path)).To(Succeed())
	providertest.AwaitReady(t, e.provider, name)
	g.Expect(e.Engagements(name)).To(Equal(1))
}

func TestAllowedCommands(t *testing.T) {
	e := newEnv(t, func(o *file.Options) {
		o.Exec.AllowedCommands = []credentials.AllowedCommand{{Command: "/bin/allowed"}}
	})
	config := providertest.Config(mctest.New(t).Config())
	config.AuthInfos["main"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "sh", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
	e.write("a.kubeconfig", string(providertest.Encode(t, config)))
	providertest.AwaitStatus(t, e.provider, e.name("a.kubeconfig", "main"), fleet.Backoff, fleet.ResolveFailed, `"sh" is not among the allowed commands`)
}
