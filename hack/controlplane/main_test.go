// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/hack/controlplane/internal/pinned"
)

func TestSources(t *testing.T) {
	const etcd, apiServer, kubectl, envtest = "etcd", "kube-apiserver", "kubectl", "setup-envtest"
	tests := []struct {
		name     string
		override []string // binaries in the folder that KUBEBUILDER_ASSETS names
		cached   []string // binaries in the cache
		env      []string
		args     []string

		wantCode    int
		wantVersion string   // of the API server
		wantBuilds  []string // the packages that go builds
		wantStderr  string
	}{
		{
			name:     "KUBEBUILDER_ASSETS takes precedence over the cache",
			override: []string{etcd, apiServer}, cached: []string{etcd, apiServer, kubectl},
			wantVersion: "override",
		},
		{
			name:     "an incomplete KUBEBUILDER_ASSETS is an error, even with a full cache",
			override: []string{etcd}, cached: []string{etcd, apiServer, kubectl},
			wantCode: exitBadOverride, wantStderr: "KUBEBUILDER_ASSETS is not usable",
		},
		{
			name:     "a relative KUBEBUILDER_ASSETS is an error",
			env:      []string{"KUBEBUILDER_ASSETS=bin"},
			wantCode: exitBadOverride, wantStderr: "not an absolute path",
		},
		{
			name:        "a full cache needs no build",
			cached:      []string{etcd, apiServer, kubectl},
			wantVersion: "cached",
		},
		{
			name:        "a download fills an empty cache, also with another patch release",
			env:         []string{envDownloaded + "=" + minor(t) + ".99"},
			wantVersion: minor(t) + ".99", wantBuilds: []string{envtest},
		},
		{
			name:        "a download of another minor release is rejected",
			env:         []string{envDownloaded + "=v1.2.3"},
			wantVersion: version(t), wantBuilds: []string{envtest, etcd, apiServer, kubectl},
		},
		{
			name:        "a download that fails leads to a build",
			env:         []string{envFail + "=download"},
			wantVersion: version(t), wantBuilds: []string{envtest, etcd, apiServer, kubectl},
		},
		{
			name:        "a build of the downloader that fails leads to a build of the rest",
			env:         []string{envFail + "=setup-envtest"},
			wantVersion: version(t), wantBuilds: []string{envtest, etcd, apiServer, kubectl},
		},
		{
			name:        "a download that takes too long leads to a build",
			env:         []string{envHang + "=download"},
			args:        []string{"-download-timeout=50ms"},
			wantVersion: version(t), wantBuilds: []string{envtest, etcd, apiServer, kubectl},
		},
		{
			name:        "no download without time for it",
			args:        []string{"-download-timeout=0"},
			wantVersion: version(t), wantBuilds: []string{etcd, apiServer, kubectl},
		},
		{
			name:   "an incomplete cache gets what is missing",
			cached: []string{etcd, apiServer}, args: []string{"-download-timeout=0"},
			wantVersion: "cached", wantBuilds: []string{kubectl},
		},
		{
			name:     "a failed build shows the compiler's error",
			env:      []string{envFail + "=kube-apiserver"},
			args:     []string{"-download-timeout=0"},
			wantCode: exitFailed, wantBuilds: []string{etcd, apiServer},
			wantStderr: "kube-apiserver.go:1:1: syntax error",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := newEnvironment(t)
			e.env = append(e.env, envGate+"="+newGate(t).Addr().String())
			e.env = append(e.env, tt.env...)
			for _, name := range tt.cached {
				e.install(e.cache, name, "cached")
			}
			wantDir := e.cache
			if tt.override != nil {
				wantDir = t.TempDir()
				e.env = append(e.env, "KUBEBUILDER_ASSETS="+wantDir)
				for _, name := range tt.override {
					e.install(wantDir, name, "override")
				}
			}

			cmd, stdout, stderr := e.command(tt.args...)
			_ = cmd.Run()

			if code := cmd.ProcessState.ExitCode(); code != tt.wantCode {
				t.Fatalf("exit code %d, want %d; standard error:\n%s", code, tt.wantCode, stderr)
			}
			if !strings.Contains(stderr.String(), tt.wantStderr) {
				t.Errorf("standard error %q, want %q in it", stderr, tt.wantStderr)
			}
			var builds []string
			for _, call := range e.calls() {
				builds = append(builds, filepath.Base(strings.TrimSuffix(call, "/server/v3")))
			}
			if got, want := strings.Join(builds, " "), strings.Join(tt.wantBuilds, " "); got != want {
				t.Errorf("go built %q, want %q", got, want)
			}
			if tt.wantCode != exitOK {
				if stdout.Len() > 0 {
					t.Errorf("standard output %q, want none", stdout)
				}
				return
			}
			if got := strings.TrimSpace(stdout.String()); got != wantDir {
				t.Fatalf("standard output %q, want %q", got, wantDir)
			}
			out, err := exec.Command(filepath.Join(wantDir, apiServer), "--version").Output()
			if err != nil || !strings.Contains(string(out), tt.wantVersion) {
				t.Errorf("kube-apiserver prints %q, %v; want %q", out, err, tt.wantVersion)
			}
		})
	}
}

func TestBuildsIgnoreGOFLAGS(t *testing.T) {
	e := newEnvironment(t)
	e.env = append(e.env, "GOFLAGS=-mod=vendor")
	cmd, _, stderr := e.command("-download-timeout=0")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v:\n%s", err, stderr)
	}
	for _, call := range e.calls() {
		if !strings.HasPrefix(call, "GOFLAGS=-mod=readonly ") {
			t.Errorf("go was run as %q", call)
		}
	}
}

func TestOverrideIsTheCache(t *testing.T) {
	e := newEnvironment(t)
	for _, name := range []string{"etcd", "kube-apiserver"} { // of a version without kubectl
		e.install(e.cache, name, "cached")
	}
	e.env = append(e.env, "KUBEBUILDER_ASSETS="+e.cache)
	cmd, stdout, stderr := e.command("-download-timeout=0")
	if err := cmd.Run(); err != nil || stdout.String() != e.cache+"\n" {
		t.Fatalf("%v, standard output %q, standard error %q", err, stdout, stderr)
	}
	if calls := e.calls(); len(calls) != 1 || !strings.HasSuffix(calls[0], "/cmd/kubectl") {
		t.Errorf("go was run as %q, want one build of kubectl", calls)
	}
}

func TestQuiet(t *testing.T) {
	e := newEnvironment(t)
	cmd, stdout, stderr := e.command("-quiet", "-download-timeout=0")
	if err := cmd.Run(); err != nil || stderr.Len() > 0 || stdout.String() != e.cache+"\n" {
		t.Errorf("%v, standard output %q, standard error %q", err, stdout, stderr)
	}
}

func TestTwoProcessesBuildOnce(t *testing.T) {
	e := newEnvironment(t)
	gate := newGate(t)
	e.env = append(e.env, envGate+"="+gate.Addr().String(), envHang+"=etcd")

	first, firstOut, _ := e.command("-download-timeout=0")
	e.start(first)
	building := gate.arrival(t)

	second, secondOut, _ := e.command("-download-timeout=0")
	waiting := newLineWriter("waiting for another process")
	second.Stderr = waiting
	e.start(second)
	<-waiting.seen
	building.Close()

	for _, cmd := range []*exec.Cmd{first, second} {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if firstOut.String() != secondOut.String() || firstOut.Len() == 0 {
		t.Errorf("first printed %q, second %q", firstOut, secondOut)
	}
	if calls := e.calls(); len(calls) != 3 {
		t.Errorf("go was run %d times, want 3 times:\n%s", len(calls), strings.Join(calls, "\n"))
	}
}

func TestInterruptedBuildLeavesNothing(t *testing.T) {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		t.Run("in the middle of "+name, func(t *testing.T) {
			e := newEnvironment(t)
			gate := newGate(t)
			e.env = append(e.env, envGate+"="+gate.Addr().String(), envHang+"="+name)
			cmd, stdout, _ := e.command("-download-timeout=0")
			e.start(cmd)
			building := gate.arrival(t)
			defer building.Close()

			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
				t.Errorf("exit code %d, want %d", code, exitInterrupted)
			}
			if stdout.Len() > 0 {
				t.Errorf("standard output %q, want none", stdout)
			}
			_, _ = io.Copy(io.Discard, building) // go has ended, too
			if left, err := os.ReadDir(e.cache); err != nil || len(left) > 0 {
				t.Errorf("the cache holds %v, %v", left, err)
			}
		})
	}
}

func TestKilledBuildLeavesNoBinary(t *testing.T) {
	e := newEnvironment(t)
	gate := newGate(t)
	hang := []string{envGate + "=" + gate.Addr().String(), envHang + "=kube-apiserver"}
	killed, _, _ := e.command("-download-timeout=0")
	killed.Env = append(killed.Env, hang...)
	e.start(killed)
	building := gate.arrival(t)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	building.Close()

	cmd, stdout, stderr := e.command("-download-timeout=0")
	if err := cmd.Run(); err != nil || stdout.String() != e.cache+"\n" {
		t.Fatalf("%v, standard output %q, standard error %q", err, stdout, stderr)
	}
	entries, err := os.ReadDir(e.cache)
	if err != nil || len(entries) != 3 {
		t.Errorf("the cache holds %v, %v; want three binaries", entries, err)
	}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		name     string
		args     []string
		wantCode int
		want     string
	}{
		{"help", []string{"--help"}, exitOK, "export KUBEBUILDER_ASSETS="},
		{"an unknown flag", []string{"-x"}, exitUsage, "flag provided but not defined"},
		{"an argument", []string{"x"}, exitUsage, "takes no arguments"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), tt.args, &stdout, &stderr); code != tt.wantCode {
				t.Errorf("exit code %d, want %d", code, tt.wantCode)
			}
			if !strings.Contains(stderr.String(), tt.want) || stdout.Len() > 0 {
				t.Errorf("standard output %q, standard error %q, want %q there", &stdout, &stderr, tt.want)
			}
		})
	}
}

func version(t *testing.T) string {
	t.Helper()
	v, err := pinned.Module{GoMod: goMod}.Version("k8s.io/kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func minor(t *testing.T) string {
	v := version(t)
	return v[:strings.LastIndex(v, ".")]
}

// An environment isolates a run of this program.
type environment struct {
	t     *testing.T
	env   []string
	bin   string
	cache string
	log   string
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	home := t.TempDir()
	e := &environment{t: t, bin: filepath.Join(home, "bin"), log: filepath.Join(home, "calls")}
	e.env = []string{
		"HOME=" + home, "XDG_CACHE_HOME=", "GORACE=atexit_sleep_ms=0", "TMPDIR=" + t.TempDir(), envCalls + "=" + e.log,
		"PATH=" + e.bin + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
	cache := filepath.Join(home, ".cache")
	if runtime.GOOS == "darwin" {
		cache = filepath.Join(home, "Library", "Caches")
	}
	e.cache = filepath.Join(cache, "rollcall", "controlplane", version(t)+"-"+runtime.GOOS+"-"+runtime.GOARCH)

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(e.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go", "controlplane"} {
		if err := os.Symlink(self, filepath.Join(e.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// command returns a run of this program that has not started yet.
func (e *environment) command(args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	cmd = exec.CommandContext(e.t.Context(), filepath.Join(e.bin, "controlplane"), args...)
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Env, cmd.Stdout, cmd.Stderr = e.env, stdout, stderr
	return cmd, stdout, stderr
}

func (e *environment) start(cmd *exec.Cmd) {
	e.t.Helper()
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
}

func (e *environment) install(dir, name, version string) {
	e.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		e.t.Fatal(err)
	}
	writeBinary(filepath.Join(dir, name), version)
}

// calls returns the command lines of go so far.
func (e *environment) calls() []string {
	e.t.Helper()
	log, err := os.ReadFile(e.log)
	if err != nil && !os.IsNotExist(err) {
		e.t.Fatal(err)
	}
	return strings.FieldsFunc(string(log), func(r rune) bool { return r == '\n' })
}

// A lineWriter closes seen when a text has been written to it.
type lineWriter struct {
	want string
	got  bytes.Buffer
	seen chan struct{}
}

func newLineWriter(want string) *lineWriter {
	return &lineWriter{want: want, seen: make(chan struct{})}
}

func (w *lineWriter) Write(p []byte) (int, error) {
	before := strings.Contains(w.got.String(), w.want)
	w.got.Write(p)
	if !before && strings.Contains(w.got.String(), w.want) {
		close(w.seen)
	}
	return len(p), nil
}
