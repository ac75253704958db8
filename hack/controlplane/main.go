// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/rollcall-dev/rollcall/hack/controlplane/internal/assets"
	"github.com/rollcall-dev/rollcall/hack/controlplane/internal/pinned"
	"github.com/rollcall-dev/rollcall/hack/controlplane/internal/progress"
)

// Exit codes, which are part of the program's interface.
const (
	exitOK          = 0
	exitFailed      = 1   // the binaries could not be prepared
	exitUsage       = 2   // bad flags or arguments
	exitBadOverride = 3   // KUBEBUILDER_ASSETS is set, but not usable
	exitInterrupted = 130 // SIGINT or SIGTERM
)

const usage = `Usage: controlplane [flags]

Prints a folder with kube-apiserver, etcd and kubectl. If needed, it first downloads
them in seconds, or builds them from source in a few minutes. The result is stored in
the user's cache folder.

Example:

  export KUBEBUILDER_ASSETS="$(go -C hack/controlplane run .)"

Flags:
`

const exitCodes = `
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 KUBEBUILDER_ASSETS is set but
not usable, 130 interrupted. (Under "go run" each of them but 0 becomes 1.)
`

var (
	//go:embed go.mod
	goMod []byte
	//go:embed go.sum
	goSum []byte
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quiet := flags.Bool("quiet", false, "print only errors, no progress")
	downloadTimeout := flags.Duration("download-timeout", 20*time.Second,
		"stop the download after this time and build from source; 0 for no download")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
		fmt.Fprint(flags.Output(), exitCodes)
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "controlplane: takes no arguments, got %q\n", flags.Arg(0))
		return exitUsage
	}

	dir, err := find(ctx, progress.New(stderr, *quiet), *downloadTimeout)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "controlplane: interrupted; the next run starts again, with the Go build cache")
		return exitInterrupted
	case errors.Is(err, assets.ErrOverride):
		fmt.Fprintf(stderr, "controlplane: %v\n", err)
		return exitBadOverride
	case err != nil:
		fmt.Fprintf(stderr, "controlplane: %v\n", err)
		return exitFailed
	}
	fmt.Fprintln(stdout, dir)
	return exitOK
}

func find(ctx context.Context, report *progress.Reporter, downloadTimeout time.Duration) (string, error) {
	module := pinned.Module{GoMod: goMod, GoSum: goSum}
	version, err := module.Version(assets.KubernetesModule)
	if err != nil {
		return "", err
	}
	userCache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache folder: %w", err)
	}

	var makers []assets.Maker
	if downloadTimeout > 0 {
		makers = append(makers, &assets.Download{
			Module: module, Version: version, Timeout: downloadTimeout, Report: report,
		})
	}
	makers = append(makers, &assets.Build{Module: module, Version: version, Report: report})

	finder := assets.Finder{
		Override: os.Getenv("KUBEBUILDER_ASSETS"),
		Cache: filepath.Join(userCache, "rollcall", "controlplane",
			fmt.Sprintf("%s-%s-%s", version, runtime.GOOS, runtime.GOARCH)),
		Version: version,
		Makers:  makers,
		Report:  report,
	}
	return finder.Find(ctx)
}
