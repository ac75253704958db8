// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary is its own credential plugin: run with this variable, it
// does what the folder named there says.
const fakePluginVariable = "ROLLCALL_FAKE_PLUGIN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(fakePluginVariable); dir != "" {
		runFakePlugin(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// runFakePlugin notes the run in the folder, then does what the folder's files
// ask for: start a child, wait, write to stderr, print the output, wait again, exit
// with a code.
func runFakePlugin(dir string) {
	record, err := json.Marshal(fakeRun{
		Args:     os.Args[1:],
		Env:      os.Environ(),
		ExecInfo: os.Getenv("KUBERNETES_EXEC_INFO"),
		PID:      os.Getpid(),
	})
	must(err)
	f, err := os.CreateTemp(dir, "run-*")
	must(err)
	_, err = f.Write(record)
	must(err)
	must(f.Close())
	must(os.Rename(f.Name(), filepath.Join(dir, fmt.Sprintf("done-%d-%d.json", time.Now().UnixNano(), os.Getpid()))))

	if exists(dir, "alive") {
		// A child that hangs holds this pipe open for as long as it lives.
		alive, err := os.OpenFile(filepath.Join(dir, "alive"), os.O_WRONLY, 0)
		must(err)
		child := exec.Command("sleep", "600")
		child.ExtraFiles = []*os.File{alive}
		if !exists(dir, "quiet") {
			child.Stdout, child.Stderr = os.Stdout, os.Stderr
		}
		must(child.Start())
		must(alive.Close())
	}
	if exists(dir, "gate") {
		// Opening a pipe for reading waits for a writer.
		_ = read(dir, "gate")
	}
	fmt.Fprint(os.Stderr, read(dir, "stderr"))
	fmt.Print(read(dir, "output"))
	if exists(dir, "hang") {
		_ = read(dir, "hang")
	}
	if code := read(dir, "code"); code != "" {
		var n int
		_, err := fmt.Sscan(code, &n)
		must(err)
		os.Exit(n)
	}
}

type fakeRun struct {
	Args     []string
	Env      []string
	ExecInfo string
	PID      int
}

func (r *fakeRun) env(name string) (string, bool) {
	for _, variable := range r.Env {
		if value, found := strings.CutPrefix(variable, name+"="); found {
			return value, true
		}
	}
	return "", false
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

func read(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return string(data)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "fake plugin:", err)
		os.Exit(99)
	}
}

// fakePlugin is the plugin as a test sees it.
type fakePlugin struct {
	t   testing.TB
	dir string
}

func newFakePlugin(t testing.TB) *fakePlugin {
	t.Helper()
	return &fakePlugin{t: t, dir: t.TempDir()}
}

// set writes one of the plugin's files, at once.
func (p *fakePlugin) set(name, content string) {
	p.t.Helper()
	temporary := filepath.Join(p.dir, "new-"+name)
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

// output sets the output: the token and, if it is not zero, the expiry.
func (p *fakePlugin) output(token string, expiry time.Time) {
	p.t.Helper()
	status := map[string]string{"token": token}
	if !expiry.IsZero() {
		status["expirationTimestamp"] = expiry.UTC().Format(time.RFC3339)
	}
	p.set("output", execCredential("client.authentication.k8s.io/v1", status))
}

func execCredential(apiVersion string, status map[string]string) string {
	data, err := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": apiVersion, "status": status})
	if err != nil {
		panic(err)
	}
	return string(data)
}

// shut lets each run wait until open is called.
func (p *fakePlugin) shut() { p.pipe("gate") }

func (p *fakePlugin) pipe(name string) {
	p.t.Helper()
	if err := syscall.Mkfifo(filepath.Join(p.dir, name), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// open waits for a run to reach the gate, lets it go on, and takes the gate
// away.
func (p *fakePlugin) open() {
	p.t.Helper()
	gate, err := os.OpenFile(filepath.Join(p.dir, "gate"), os.O_WRONLY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.Remove(gate.Name()); err != nil {
		p.t.Fatal(err)
	}
	if err := gate.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// leaveChild lets a run start a child that outlives it. What is returned waits
// until such a child has been started and has ended.
func (p *fakePlugin) leaveChild() (wait func()) {
	p.t.Helper()
	p.pipe("alive")
	ended := make(chan error, 1)
	// Opening waits for the plugin, reading for the last one to close.
	go func() {
		_, err := os.ReadFile(filepath.Join(p.dir, "alive"))
		ended <- err
	}()
	return func() {
		p.t.Helper()
		if err := <-ended; err != nil {
			p.t.Fatal(err)
		}
	}
}

// runs returns the arguments and the environment of the runs so far, in order.
func (p *fakePlugin) runs() []fakeRun {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.dir, "done-*.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	runs := make([]fakeRun, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		if err := json.Unmarshal(data, &runs[i]); err != nil {
			p.t.Fatal(err)
		}
	}
	return runs
}
