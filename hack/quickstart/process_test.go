// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
)

// talk is a program that prints its argument, and goodbye after SIGTERM. With the
// argument "short" it exits at once.
func talk() {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGTERM)
	fmt.Println("hello", os.Args[1])
	fmt.Fprintln(os.Stderr, "log")
	if os.Args[1] == "short" {
		os.Exit(3)
	}
	<-interrupted
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(out, "goodbye")
	_ = out.Flush()
}

func startTalker(t *testing.T, how string) *process {
	t.Helper()
	t.Setenv(role, "talker")
	p, err := startProcess("talker", t.TempDir(), os.Args[0], how)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func is(want string) func(line string) bool {
	return func(line string) bool { return line == want }
}

func TestProcess(t *testing.T) {
	defer goleak.VerifyNone(t)
	g := NewWithT(t)
	p := startTalker(t, "long")

	g.Expect(p.Await(t.Context(), p.stdout, 0, is("hello long"))).To(Equal("hello long"))
	g.Expect(p.Await(t.Context(), p.stderr, 0, is("log"))).To(Equal("log"))
	g.Expect(p.Running()).To(Succeed())

	enough := errors.New("waited long enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	_, err := p.Await(ctx, p.stdout, 0, is("something else"))
	g.Expect(err).To(MatchError(enough))

	g.Expect(p.Stop()).To(Succeed())
	g.Expect(p.Await(t.Context(), p.stdout, 1, is("goodbye"))).To(Equal("goodbye"), "the last lines are recorded")
	g.Expect(p.Running()).To(MatchError("the talker has exited"))
}

func TestProcessThatEnds(t *testing.T) {
	defer goleak.VerifyNone(t)
	g := NewWithT(t)
	p := startTalker(t, "short")

	_, err := p.Await(t.Context(), p.stdout, 0, is("goodbye"))
	g.Expect(err).To(MatchError("the talker has failed: exit status 3"), "Await returns when the program ends")
	g.Expect(p.Running()).To(MatchError(err))
	g.Expect(p.Stop()).To(Succeed(), "there is nothing to stop")
}

func TestProcessFiles(t *testing.T) {
	g := NewWithT(t)
	t.Setenv(role, "talker")
	dir := t.TempDir()
	p, err := startProcess("talker", dir, os.Args[0], "short")
	g.Expect(err).NotTo(HaveOccurred())
	<-p.ended
	for name, want := range map[string]string{"talker.out": "hello short\n", "talker.log": "log\n"} {
		path := filepath.Join(dir, name)
		g.Expect(os.ReadFile(path)).To(BeEquivalentTo(want))
		info, err := os.Stat(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	}

	_, err = startProcess("missing", dir, filepath.Join(dir, "missing"))
	g.Expect(err).To(MatchError(os.ErrNotExist))
}
