// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gettoken_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func inAnHour() time.Time { return time.Now().Add(time.Hour) }

func TestFiftyProcessesShareOneRun(t *testing.T) {
	for _, tc := range []struct {
		name   string
		args   []string
		expiry time.Time
		fails  bool
	}{
		{name: "with an expiry", args: []string{"--server=https://east.example.com"}, expiry: inAnHour()},
		{name: "without an expiry", args: []string{"--server=https://east.example.com"}},
		{name: "whose profile is read", expiry: inAnHour()},
		{name: "that fails", fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnvironment(t)
			want := "v1 t1"
			if tc.fails {
				want = ""
			} else {
				e.output("east", "t1", tc.expiry)
			}
			var group sync.WaitGroup
			for range 50 {
				group.Go(func() {
					token, stderr := e.token("east", tc.args...)
					if token != want || tc.fails != strings.Contains(stderr, "no such account") {
						t.Errorf("token %q, %s", token, stderr)
					}
				})
			}
			group.Wait()
			if tc.fails { // those that start after the run try again
				g.Expect(e.runs("east")).To(BeNumerically("<", 25))
				return
			}
			g.Expect(e.runs("east")).To(Equal(1))
		})
	}
}

func TestCacheHasModesAndKeys(t *testing.T) {
	g := NewWithT(t)
	e := newEnvironment(t)
	e.output("east", "of-east", inAnHour())
	e.output("west", "of-west", inAnHour())
	for range 2 {
		for _, context := range []string{"east", "west", "static"} {
			token, stderr := e.token(context)
			want := map[string]string{"east": "v1 of-east", "west": "v1 of-west", "static": "v1 static-token"}[context]
			g.Expect(token).To(Equal(want), stderr)
		}
	}
	g.Expect(e.runs("east") + e.runs("west")).To(Equal(2))
	files := 0
	g.Expect(filepath.WalkDir(filepath.Join(e.dir, ".cache", "rollcall", "get-token"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		files++
		info, err := entry.Info()
		g.Expect(info.Mode().Perm()&0o077).To(BeZero(), path)
		return err
	})).To(Succeed())
	g.Expect(files).To(Equal(7), "a folder, credentials and locks")
}

func TestWhenThePluginIsRunAgain(t *testing.T) {
	g := NewWithT(t)
	e := newEnvironment(t)
	e.output("east", "t1", inAnHour())
	expect := func(want string, runs int, args ...string) {
		t.Helper()
		token, stderr := e.token("east", args...)
		g.Expect(token).To(Equal(want), stderr)
		g.Expect(e.runs("east")).To(Equal(runs))
	}
	expect("v1 t1", 1)
	e.output("east", "t2", inAnHour())
	expect("v1 t1", 1)
	expect("v1 t2", 2, "--no-cache")
	expect("v1 t1", 2)
	expect("v1 t2", 3, "--refresh")
	expect("v1 t2", 3)
	expect("v1 t2", 4, "--max-age=1ns")

	// A failure does not take a valid credential away, but the next run replaces it.
	g.Expect(os.Remove(filepath.Join(e.dir, "east", "output"))).To(Succeed())
	token, stderr := e.token("east", "--max-age=1ns")
	g.Expect(token).To(Equal("v1 t2"))
	g.Expect(stderr).To(And(ContainSubstring("no such account"), ContainSubstring("using the stored credential")))
	token, stderr = e.token("east", "--refresh")
	g.Expect(token).To(BeEmpty())
	g.Expect(stderr).To(And(ContainSubstring("error:"), ContainSubstring("no such account")))

	// Expired credentials are neither used nor kept.
	e.output("west", "t1", time.Now().Add(2*time.Second))
	token, _ = e.token("west")
	g.Expect(token).To(Equal("v1 t1"))
	g.Expect(os.Remove(filepath.Join(e.dir, "west", "output"))).To(Succeed())
	g.Eventually(func() string {
		token, _ := e.token("west")
		return token
	}, 10*time.Second).Should(BeEmpty())
}

func TestWrongServer(t *testing.T) {
	g := NewWithT(t)
	e := newEnvironment(t)
	e.output("east", "t1", inAnHour())
	token, stderr := e.token("east")
	g.Expect(token).To(Equal("v1 t1"), stderr)
	token, stderr = e.token("east", "--server=https://evil.example.com")
	g.Expect(token).To(BeEmpty())
	g.Expect(stderr).To(ContainSubstring("has the server https://east.example.com, not https://evil.example.com: run 'mc-credential kubeconfig' again"))

	// The same with the cluster information that an exec plugin may get.
	c := e.command("east")
	c.Env = append(c.Env, `KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{"cluster":{"server":"https://evil.example.com"}}}`)
	token, stderr = run(t, c)
	g.Expect(token).To(BeEmpty())
	g.Expect(stderr).To(ContainSubstring("not https://evil.example.com"))
	again := e.command("east", "--server=https://east.example.com")
	again.Env = c.Env
	token, stderr = run(t, again)
	g.Expect(token).To(BeEmpty(), "kubectl would send the stored credential to its server")
	g.Expect(stderr).To(ContainSubstring("is for --server https://east.example.com, but the kubeconfig has the server https://evil.example.com"))
	g.Expect(e.runs("east")).To(Equal(1))
}

func TestRequests(t *testing.T) {
	for _, tc := range []struct {
		name, info  string
		token, text string
	}{
		{name: "v1", info: `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"}`, token: "v1 t1"},
		{name: "v1beta1", info: `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"}`, token: "v1beta1 t1"},
		{name: "none, in a script", token: "v1 t1"},
		{name: "another version", info: `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v2"}`, text: `apiVersion is "client.authentication.k8s.io/v2"`},
		{name: "no JSON", info: `{`, text: "error: bad request: KUBERNETES_EXEC_INFO: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnvironment(t)
			e.output("east", "t1", inAnHour())
			c := e.command("east")
			c.Env = append(c.Env, "KUBERNETES_EXEC_INFO="+tc.info)
			token, stderr := run(t, c)
			g.Expect(token).To(Equal(tc.token), stderr)
			g.Expect(stderr).To(ContainSubstring(tc.text))
			g.Expect(strings.Count(stderr, "\n")).To(BeNumerically("<=", 1), "one line")
		})
	}
}

func TestKilledHolderReleasesTheLock(t *testing.T) {
	g := NewWithT(t)
	e := newEnvironment(t)
	e.write("east/hang", "")
	holder := e.command("east")
	g.Expect(holder.Start()).To(Succeed())
	g.Eventually(func() int { return e.runs("east") }, 20*time.Second, 10*time.Millisecond).Should(Equal(1))
	e.output("east", "t1", inAnHour())
	g.Expect(os.Remove(filepath.Join(e.dir, "east", "hang"))).To(Succeed())
	g.Expect(holder.Process.Kill()).To(Succeed())
	_ = holder.Wait()
	token, stderr := e.token("east")
	g.Expect(token).To(Equal("v1 t1"), stderr)
}

func TestRelativeFile(t *testing.T) {
	g := NewWithT(t)
	e := newEnvironment(t)
	c := e.command("static")
	c.Args = append(c.Args[:1:1], "get-token", "--from=file", "--file=clusters.kubeconfig", filepath.Join(e.dir, "clusters.kubeconfig+static"))
	c.Dir = e.dir
	token, stderr := run(t, c)
	g.Expect(token).To(Equal("v1 static-token"), stderr)
}
