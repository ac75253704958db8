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
	exitFailed      = 1   // a step failed
	exitUsage       = 2   // bad flags or arguments
	exitInterrupted = 130 // by a signal
)

const usage = `Usage: quickstart [--from SOURCE] [--keep]

Shows Rollcall at work: starts a hub and three member clusters on this machine,
runs one controller for all of them, and verifies what it does while clusters
join, leave, fail, and get new tokens. Needs Go and a module proxy on Linux or
macOS; no Docker, no cluster.
Run it in Rollcall's source tree: make quickstart, or

  go run ./hack/quickstart

At the end, also on Ctrl-C, it stops everything and deletes its files.

Flags:
  --from SOURCE   where the controller finds the clusters; so does FROM=SOURCE:
                    hub           ClusterProfiles of a hub (default)
                    kubeconfig    kubeconfigs in Secrets of a management cluster
                    file          kubeconfig files
                    cluster-api   Clusters of Cluster API
  --keep          keep everything running until Ctrl-C; so does KEEP=1

Environment:
  KUBEBUILDER_ASSETS   folder with kube-apiserver and etcd; by default,
                       hack/controlplane finds or builds them
  FROM                 hub, kubeconfig, file or cluster-api
  KEEP                 1 means --keep
  NO_COLOR             any value turns colors off

Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted.
`

func main() {
	// Only the controller's logs matter here, not those of the libraries.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())

	// Signals are still caught during the clean-up: neither a second Ctrl-C nor
	// a closed pipe may leave control planes behind.
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
	from := flags.String("from", cmp.Or(os.Getenv("FROM"), sources[0].name), "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "quickstart: takes no arguments, got %q\n", flags.Arg(0))
		return exitUsage
	}
	s, err := newSource(*from)
	if err != nil {
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return exitUsage
	}

	err = newQuickstart(newUI(stdout), s, *keep).run(ctx)
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		return exitInterrupted
	default:
		return exitFailed
	}
}
