// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/internal/cli"
)

// If this variable is set, the test binary is mc-credential.
const programVariable = "KUBECONFIG_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}

// foreign is a kubeconfig with comments, an unknown field, and an order of its own.
const foreign = `# my clusters
apiVersion: v1
kind: Config
preferences: {}
current-context: mine
users:
- name: mine # with a token
  user:
    token: my-token
    future-field: {a: 1}
contexts:
- context:
    cluster: mine
    user: mine
    namespace: here
  name: mine
clusters:
# the first one
- cluster:
    server: https://mine.example.com
    extensions:
    - name: other.example.com
      extension: {inventory: x, profile: y}
  name: mine
`

// environment is an inventory in a file, and a file to merge into.
type environment struct {
	t               *testing.T
	dir             string
	inventory, mine string
	prefix          string // of the names of contexts
}

func newEnvironment(t *testing.T, contexts ...string) *environment {
	t.Helper()
	dir := t.TempDir()
	e := &environment{t: t, dir: dir, inventory: filepath.Join(dir, "inventory"), mine: filepath.Join(dir, "mine")}
	e.prefix = e.inventory + "+"
	e.define(contexts...)
	return e
}

// define makes these the contexts of the inventory.
func (e *environment) define(contexts ...string) {
	e.t.Helper()
	config := clientcmdapi.NewConfig()
	for _, name := range contexts {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + name + ".example.com", TLSServerName: name}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "token-of-" + name}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	if err := clientcmd.WriteToFile(*config, e.inventory); err != nil {
		e.t.Fatal(err)
	}
}

func (e *environment) write(content string) {
	e.t.Helper()
	if err := os.WriteFile(e.mine, []byte(content), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

func (e *environment) read() string {
	e.t.Helper()
	data, err := os.ReadFile(e.mine)
	if err != nil {
		e.t.Fatal(err)
	}
	return string(data)
}

// config returns the file as kubectl reads it.
func (e *environment) config() *clientcmdapi.Config {
	e.t.Helper()
	config, err := clientcmd.LoadFromFile(e.mine)
	if err != nil {
		e.t.Fatal(err)
	}
	return config
}

// command returns "kubeconfig" for the inventory, which has not started.
func (e *environment) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(e.t.Context(), os.Args[0], append([]string{"kubeconfig", "--from=file", "--file=" + e.inventory}, args...)...)
	c.Env = []string{programVariable + "=1", "HOME=" + e.dir, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	return c
}

// run runs it and returns what it printed. Errors are one line.
func (e *environment) run(args ...string) (stdout, stderr string, ok bool) {
	e.t.Helper()
	c := e.command(args...)
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	err := c.Run()
	if err != nil && strings.Count(errOut.String(), "\n") > 1 {
		e.t.Errorf("standard error %s", &errOut)
	}
	return out.String(), errOut.String(), err == nil
}

// mustRun runs it with --merge.
func (e *environment) mustRun(args ...string) (stderr string) {
	e.t.Helper()
	_, stderr, ok := e.run(append(args, "--merge="+e.mine)...)
	if !ok {
		e.t.Fatal(stderr)
	}
	return stderr
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("c", i)
	}
	return names
}
