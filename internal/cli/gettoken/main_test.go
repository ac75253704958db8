// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gettoken_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/internal/cli"
)

// If this variable is set, the test binary is mc-credential or its plugin.
const programVariable = "GET_TOKEN_TEST_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(programVariable) {
	case "mc-credential":
		os.Exit(cli.Main())
	case "plugin":
		runPlugin(os.Args[1])
	default:
		os.Exit(m.Run())
	}
}

// runPlugin notes the run in the folder, and prints the output there. If there is a file
// "hang", it hangs.
func runPlugin(dir string) {
	runs, err := os.OpenFile(filepath.Join(dir, "runs"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	_, err = fmt.Fprintln(runs, os.Getpid())
	must(err)
	must(runs.Close())
	if _, err := os.Stat(filepath.Join(dir, "hang")); err == nil {
		time.Sleep(time.Hour)
	}
	output, err := os.ReadFile(filepath.Join(dir, "output"))
	must(err)
	fmt.Print(string(output))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "no such account")
		os.Exit(1)
	}
}

// environment is a kubeconfig file whose users run the plugin, and a home of its own.
type environment struct {
	t   *testing.T
	dir string
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	e := &environment{t: t, dir: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	users, contexts, clusters := "", "", ""
	for _, name := range []string{"east", "west"} {
		if err := os.Mkdir(filepath.Join(e.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		users += fmt.Sprintf("- name: %s\n  user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: %q, args: [%q], env: [{name: %s, value: plugin}]}}\n",
			name, self, filepath.Join(e.dir, name), programVariable)
		clusters += fmt.Sprintf("- name: %s\n  cluster: {server: 'https://%s.example.com'}\n", name, name)
		contexts += fmt.Sprintf("- name: %s\n  context: {cluster: %s, user: %s}\n", name, name, name)
	}
	contexts += "- name: static\n  context: {cluster: east, user: static}\n"
	users += "- name: static\n  user: {token: static-token}\n"
	e.write("clusters.kubeconfig", "clusters:\n"+clusters+"contexts:\n"+contexts+"users:\n"+users)
	return e
}

func (e *environment) write(name, content string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte(content), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

func (e *environment) read(name string) string {
	e.t.Helper()
	data, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil {
		e.t.Fatal(err)
	}
	return string(data)
}

// output is what the plugin of the context prints from now on.
func (e *environment) output(context, token string, expiry time.Time) {
	e.t.Helper()
	status := map[string]string{"token": token}
	if !expiry.IsZero() {
		status["expirationTimestamp"] = expiry.UTC().Format(time.RFC3339)
	}
	data, err := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status})
	if err != nil {
		e.t.Fatal(err)
	}
	e.write(filepath.Join(context, "output"), string(data))
}

// runs returns how often the plugin of the context was run.
func (e *environment) runs(context string) int {
	data, _ := os.ReadFile(filepath.Join(e.dir, context, "runs"))
	return strings.Count(string(data), "\n")
}

// command returns get-token for a context, which has not started.
func (e *environment) command(context string, args ...string) *exec.Cmd {
	file := filepath.Join(e.dir, "clusters.kubeconfig")
	all := append([]string{"get-token", "--from=file", "--file=" + file, file + "+" + context}, args...)
	c := exec.CommandContext(e.t.Context(), os.Args[0], all...)
	c.Env = []string{
		programVariable + "=mc-credential", "HOME=" + e.dir, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0",
		`KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{}}`,
	}
	return c
}

// token runs get-token and returns the token, or the standard error.
func (e *environment) token(context string, args ...string) (token, stderr string) {
	e.t.Helper()
	return run(e.t, e.command(context, args...))
}

func run(t *testing.T, c *exec.Cmd) (token, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	if err := c.Run(); err != nil {
		if out.Len() > 0 {
			t.Errorf("failed and printed %s", &out)
		}
		return "", errOut.String()
	}
	var credential struct {
		APIVersion, Kind string
		Status           struct{ Token string }
	}
	if err := json.Unmarshal(out.Bytes(), &credential); err != nil || credential.Kind != "ExecCredential" {
		t.Fatalf("output %s: %v", &out, err)
	}
	return credential.APIVersion[strings.LastIndex(credential.APIVersion, "/")+1:] + " " + credential.Status.Token, errOut.String()
}
