// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
)

func TestPrint(t *testing.T) {
	g := NewWithT(t)
	e := newEnvironment(t, "east", "west")
	stdout, stderr, ok := e.run(e.prefix + "east")
	g.Expect(ok).To(BeTrue(), stderr)
	g.Expect(stderr).To(BeEmpty())
	g.Expect(stdout).NotTo(ContainSubstring("token-of"))
	config, err := clientcmd.Load([]byte(stdout))
	g.Expect(err).NotTo(HaveOccurred())
	name := e.prefix + "east"
	g.Expect(config.CurrentContext).To(Equal(name))
	g.Expect(config.Contexts).To(HaveLen(1))
	g.Expect(config.Clusters[name].Server).To(Equal("https://east.example.com"))
	g.Expect(config.Clusters[name].TLSServerName).To(Equal("east"))
	exec := config.AuthInfos[name].Exec
	self, err := filepath.Abs(os.Args[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exec.Command).To(Equal(self))
	g.Expect(exec.Args[:4]).To(Equal([]string{"get-token", "--file=" + e.inventory, "--from=file", "--server=https://east.example.com"}))
	g.Expect(exec.ProvideClusterInfo).To(BeFalse())
	g.Expect(string(exec.InteractiveMode)).To(Equal("Never"))

	stdout, stderr, ok = e.run("--all", "--prefix=x-", "--command=mc-credential")
	g.Expect(ok).To(BeTrue(), stderr)
	config, err = clientcmd.Load([]byte(stdout))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.CurrentContext).To(BeEmpty())
	g.Expect(config.Contexts).To(And(HaveLen(2), HaveKey("x-"+e.prefix+"west")))
	g.Expect(config.AuthInfos["x-"+e.prefix+"west"].Exec.Command).To(Equal("mc-credential"))
}

func TestMergeAndRemove(t *testing.T) {
	g := NewWithT(t)
	e := newEnvironment(t, "east", "west")
	e.write(foreign)
	g.Expect(e.mustRun("--all")).To(HavePrefix("✓ " + e.mine + ": contexts: 2 added, 0 removed, 0 present"))
	merged := e.read()
	for line := range strings.Lines(foreign) {
		g.Expect(merged).To(ContainSubstring(strings.TrimSpace(line)))
	}
	g.Expect(e.config().Contexts).To(HaveLen(3))
	g.Expect(e.config().CurrentContext).To(Equal("mine"))
	info, err := os.Stat(e.mine)
	g.Expect(err).NotTo(HaveOccurred())

	// The same again changes nothing, not even the file's time.
	g.Expect(e.mustRun("--all")).To(ContainSubstring("contexts: 0 added, 0 removed, 2 present"))
	again, err := os.Stat(e.mine)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.SameFile(info, again)).To(BeTrue())
	g.Expect(e.read()).To(Equal(merged))

	// The user's namespace stays, gone profiles go, and only with --all.
	e.write(strings.Replace(merged, "cluster: "+e.prefix+"east\n", "cluster: "+e.prefix+"east\n    namespace: mine\n", 1))
	e.define("east", "north")
	e.mustRun(e.prefix + "north")
	g.Expect(e.config().Contexts).To(HaveLen(4))
	g.Expect(e.mustRun("--all")).To(ContainSubstring("contexts: 0 added, 1 removed, 2 present"))
	g.Expect(e.config().Contexts).To(And(HaveLen(3), HaveKey(e.prefix+"north"), Not(HaveKey(e.prefix+"west"))))
	g.Expect(e.config().Contexts[e.prefix+"east"].Namespace).To(Equal("mine"))

	// Another inventory, whose entries stay.
	e.inventory = filepath.Join(e.dir, "second")
	e.define("south")
	e.mustRun("--all")
	g.Expect(e.config().Contexts).To(HaveLen(4))

	e.mustRun("--remove", e.prefix+"north")
	g.Expect(e.config().Contexts).To(And(HaveLen(3), Not(HaveKey(e.prefix+"north"))))
	_, stderr, ok := e.run("--remove", "mine", "--merge="+e.mine)
	g.Expect(ok).To(BeFalse())
	g.Expect(stderr).To(ContainSubstring(`no context "mine" that this command has added`))
	g.Expect(e.mustRun("--remove")).To(ContainSubstring("contexts: 2 removed"))
	g.Expect(e.read()).To(Equal(foreign))
}

func TestForeignNames(t *testing.T) {
	e := newEnvironment(t, "east", "west")
	name := e.prefix + "west"
	for _, tc := range []struct{ name, list, content, want string }{
		{"a context", "contexts", "context: {cluster: x, user: y}", `context "` + name + `" already there, not from this command: rename it, or set --prefix`},
		{"a cluster", "clusters", "cluster: {server: 'https://x'}", `cluster "` + name + `" already there`},
		{"a user", "users", "user: {token: my-token}", `user "` + name + `" already there`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			before := tc.list + ":\n- name: " + name + "\n  " + tc.content + "\n"
			e.write(before)
			_, stderr, ok := e.run("--all", "--merge="+e.mine)
			g.Expect(ok).To(BeFalse())
			g.Expect(stderr).To(ContainSubstring(tc.want))
			g.Expect(stderr).NotTo(ContainSubstring("my-token"))
			g.Expect(e.read()).To(Equal(before), "nothing is half applied")
			g.Expect(files(t, e.dir)).To(ConsistOf("inventory", "mine"))
		})
	}
}

func TestFiles(t *testing.T) {
	for _, tc := range []struct {
		name, content string
		want          string // the error, "" for success
	}{
		{name: "missing"},
		{name: "empty", content: " "},
		{name: "JSON", content: `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"mine","cluster":{"server":"https://mine"}}],"contexts":null,"users":[]}`},
		{name: "without lists", content: "kind: Config\napiVersion: v1\n"},
		{name: "with lists that are null", content: "clusters: null\ncontexts: null\nusers:\n"},
		{name: "no YAML", content: "a: [secret", want: "not valid YAML"},
		{name: "a list", content: "- a", want: "not a kubeconfig"},
		{name: "users that are no list", content: "users: {a: b}", want: "users is not a list"},
		{name: "another kind", content: "kind: Pod\napiVersion: v1\n", want: "kubectl could not read the result"},
		{name: "two documents", content: "kind: Config\n---\nkind: Config\n", want: "more than one YAML document"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnvironment(t, "east")
			if tc.content != "" {
				e.write(tc.content)
			}
			_, stderr, ok := e.run("--all", "--merge="+e.mine)
			g.Expect(ok).To(Equal(tc.want == ""), stderr)
			if tc.want != "" {
				g.Expect(stderr).To(And(ContainSubstring("error: "+e.mine+": "+tc.want), Not(ContainSubstring("secret"))))
				g.Expect(e.read()).To(Equal(tc.content))
				return
			}
			g.Expect(e.config().Contexts).To(HaveKey(e.prefix + "east"))
			info, err := os.Stat(e.mine)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
			g.Expect(e.mustRun("--all")).To(ContainSubstring("1 present"))
			e.mustRun("--remove")
			g.Expect(e.config().Contexts).To(BeEmpty())
			g.Expect(strings.Contains(e.read(), "mine")).To(Equal(strings.Contains(tc.content, "mine")))
		})
	}
}

func TestLinkAndMode(t *testing.T) {
	g := NewWithT(t)
	e := newEnvironment(t, "east")
	e.write(foreign)
	g.Expect(os.Chmod(e.mine, 0o640)).To(Succeed())
	link := filepath.Join(e.dir, "link")
	g.Expect(os.Symlink("mine", link)).To(Succeed())
	_, stderr, ok := e.run("--all", "--merge="+link)
	g.Expect(ok).To(BeTrue(), stderr)
	info, err := os.Lstat(link)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode() & os.ModeSymlink).NotTo(BeZero())
	info, err = os.Stat(e.mine)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o640))
	g.Expect(e.config().Contexts).To(HaveLen(2))
}

func TestLockOfKubectl(t *testing.T) {
	g := NewWithT(t)
	e := newEnvironment(t, "east")
	e.write(foreign)
	lock := e.mine + ".lock"
	g.Expect(os.WriteFile(lock, nil, 0o600)).To(Succeed())
	c := e.command("--all", "--merge="+e.mine)
	g.Expect(c.Start()).To(Succeed())
	time.Sleep(300 * time.Millisecond)
	g.Expect(e.read()).To(Equal(foreign))
	g.Expect(os.Remove(lock)).To(Succeed())
	g.Expect(c.Wait()).To(Succeed())
	g.Expect(e.config().Contexts).To(HaveLen(2))

	// Interrupted while it waits.
	g.Expect(os.WriteFile(lock, nil, 0o600)).To(Succeed())
	c = e.command("--remove", "--merge="+e.mine)
	var stderr strings.Builder
	c.Stderr = &stderr
	g.Expect(c.Start()).To(Succeed())
	time.Sleep(300 * time.Millisecond)
	g.Expect(c.Process.Signal(os.Interrupt)).To(Succeed())
	g.Expect(c.Wait()).NotTo(Succeed())
	g.Expect(stderr.String()).To(Equal("error: interrupted, nothing was written\n"))
	g.Expect(e.config().Contexts).To(HaveLen(2))
	g.Expect(files(t, e.dir)).To(ContainElement("mine.lock"), "the lock of another program stays")
}

func TestConcurrentMerges(t *testing.T) {
	g := NewWithT(t)
	const n = 8
	e := newEnvironment(t, numbered(n)...)
	e.write(foreign)
	done := make(chan string, n)
	for i := range n {
		go func() {
			_, stderr, _ := e.run(e.prefix+numbered(n)[i], "--merge="+e.mine)
			done <- stderr
		}()
	}
	for range n {
		g.Expect(<-done).To(ContainSubstring("contexts: 1 added"))
	}
	g.Expect(e.config().Contexts).To(HaveLen(n + 1))
}

func TestKilledMergeLeavesTheFileWhole(t *testing.T) {
	g := NewWithT(t)
	const n = 60
	e := newEnvironment(t, numbered(n)...)
	e.write(foreign)
	start := time.Now()
	e.mustRun("--all")
	duration := time.Since(start)
	outcomes := map[int]int{}
	for range 15 {
		e.write(foreign)
		c := e.command("--all", "--merge="+e.mine)
		g.Expect(c.Start()).To(Succeed())
		time.Sleep(time.Duration(rand.Float64() * 1.2 * float64(duration)))
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = os.Remove(e.mine + ".lock") // as its error says
		config := e.config()
		g.Expect(len(config.Contexts)).To(BeElementOf(1, n+1))
		g.Expect(config.AuthInfos["mine"].Token).To(Equal("my-token"))
		outcomes[len(config.Contexts)]++
	}
	t.Logf("contexts and how often: %v", outcomes)
	e.mustRun("--all")
	e.mustRun("--remove")
	g.Expect(e.read()).To(Equal(foreign))
	g.Expect(files(t, e.dir)).To(ConsistOf("inventory", "mine"), "what was incomplete is removed")
}

func TestUsage(t *testing.T) {
	e := newEnvironment(t, "east")
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no profile", nil, "name profiles, or set --all"},
		{"all and one", []string{"--all", "east"}, "exclude each other"},
		{"remove from nothing", []string{"--remove"}, "--remove needs --merge"},
		{"an unknown profile", []string{"north"}, `no profile "north" in the inventory`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			stdout, stderr, ok := e.run(tc.args...)
			g.Expect(ok).To(BeFalse())
			g.Expect(stdout).To(BeEmpty())
			g.Expect(stderr).To(ContainSubstring(tc.want))
		})
	}
}

// files returns the names in the folder, without those of folders.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}
