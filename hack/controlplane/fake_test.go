// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The test binary acts as the programs of these tests, by the name of its file:
// this program, the go command, and setup-envtest. Environment variables set how
// the latter two behave. The binaries that they build are shell scripts that print
// their version.
const (
	envCalls      = "FAKE_CALLS"      // file that gets a line per run of go
	envFail       = "FAKE_FAIL"       // what fails: any of etcd, kube-apiserver, kubectl, setup-envtest (go builds), download
	envHang       = "FAKE_HANG"       // the one of these that hangs at the gate
	envGate       = "FAKE_GATE"       // address of the gate, see newGate
	envDownloaded = "FAKE_DOWNLOADED" // version that setup-envtest downloads
)

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "controlplane":
		main()
	case "go":
		fakeGo(os.Args[1:])
	case "setup-envtest":
		fakeSetupEnvtest(os.Args[1:])
	default:
		os.Exit(m.Run())
	}
}

func fakeGo(args []string) {
	calls, err := os.OpenFile(os.Getenv(envCalls), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	_, err = fmt.Fprintf(calls, "GOFLAGS=%s go %s\n", os.Getenv("GOFLAGS"), strings.Join(args, " "))
	must(err)
	must(calls.Close())
	for _, file := range []string{"go.mod", "go.sum"} {
		_, err := os.Stat(file)
		must(err)
	}

	name := path.Base(strings.TrimSuffix(args[len(args)-1], "/server/v3"))
	out := args[slices.Index(args, "-o")+1]
	if os.Getenv(envHang) == name {
		must(os.WriteFile(out, []byte("half a binary"), 0o755))
		waitAtGate()
	}
	if fails(name) {
		fmt.Println(name + ".go:1:1: syntax error")
		os.Exit(1)
	}
	if name == "setup-envtest" {
		self, err := os.Executable()
		must(err)
		must(os.Symlink(self, out))
		return
	}
	version := regexp.MustCompile(`-X k8s.io/component-base/version.gitVersion=(\S+)`).FindStringSubmatch(strings.Join(args, " "))
	writeBinary(out, append(version, "", "v0.0.0-master")[1])
}

func fakeSetupEnvtest(args []string) {
	if os.Getenv(envHang) == "download" {
		waitAtGate()
	}
	if fails("download") {
		os.Exit(2)
	}
	dir := filepath.Join(args[slices.Index(args, "--bin-dir")+1], "k8s", "platform")
	must(os.MkdirAll(dir, 0o755))
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		writeBinary(filepath.Join(dir, name), os.Getenv(envDownloaded))
	}
	fmt.Print(dir)
}

// writeBinary writes a program that prints its name and version.
func writeBinary(path, version string) {
	must(os.WriteFile(path, fmt.Appendf(nil, "#!/bin/sh\necho %s %s\n", filepath.Base(path), version), 0o755))
}

func fails(what string) bool {
	return slices.Contains(strings.Fields(os.Getenv(envFail)), what)
}

// A gate blocks a program in the middle of its work.
type gate struct {
	net.Listener
}

func newGate(t *testing.T) gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return gate{listener}
}

// arrival waits for a program at the gate. Closing the connection lets it
// continue; reading from it ends when the program does.
func (g gate) arrival(t *testing.T) net.Conn {
	t.Helper()
	conn, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func waitAtGate() {
	conn, err := net.Dial("tcp", os.Getenv(envGate))
	must(err)
	_, _ = io.Copy(io.Discard, conn)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+":", err)
		os.Exit(9)
	}
}
