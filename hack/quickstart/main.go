// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // a step did not turn out as expected
	exitUsage       = 2   // bad flags or arguments
	exitInterrupted = 130 // by a signal
)

const usage = `Usage: quickstart [--keep]

Shows Rollcall at work: starts a hub and three member clusters on this machine,
runs one controller over them, and checks what it does while clusters join,
leave, and get new tokens. Needs Go and a module proxy on Linux or macOS; no
Docker, no cluster.
Run it in Rollcall's source tree: make quickstart, or

  go run ./hack/quickstart

Everything it starts is stopped in the end, also on Ctrl-C, and its files go.

Flags:
  --keep   leave all running afterwards, until Ctrl-C; so does KEEP=1

Environment:
  KUBEBUILDER_ASSETS   folder with kube-apiserver and etcd; by default they are
                       found or built by hack/controlplane
  KEEP                 1 means --keep
  NO_COLOR             anything means no colours

Exit codes: 0 all as expected, 1 not so, 2 wrong usage, 130 interrupted.
`

func main() {
	// The libraries' logs are of no use to somebody who watches the controller.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())

	// Signals stay caught while everything is stopped: a second Ctrl-C must
	// not leave control planes behind, nor must a reader who has seen enough.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage) }
	keepByEnvironment, err := strconv.ParseBool(cmp.Or(os.Getenv("KEEP"), "0"))
	if err != nil {
		fmt.Fprintf(stderr, "quickstart: KEEP must be 1 or 0, not %q\n", os.Getenv("KEEP"))
		return exitUsage
	}
	keep := flags.Bool("keep", keepByEnvironment, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "quickstart: takes no arguments, got %q\n", flags.Arg(0))
		return exitUsage
	}

	err = newQuickstart(newUI(stdout), *keep).run(ctx)
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		return exitInterrupted
	default:
		return exitFailed
	}
}
