// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli is the program mc-credential: each command is a package below. What a Go
// program would need, too, is not here but in the packages of the library.
package cli

//go:generate go run ../../hack/clidocs ../../docs/cli

import (
	"context"
	"fmt"
	stdlog "log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/internal/cli/check"
	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/execute"
	"github.com/rollcall-dev/rollcall/internal/cli/explain"
	"github.com/rollcall-dev/rollcall/internal/cli/get"
	"github.com/rollcall-dev/rollcall/internal/cli/gettoken"
	"github.com/rollcall-dev/rollcall/internal/cli/kubeconfig"
	"github.com/rollcall-dev/rollcall/internal/cli/list"
	"github.com/rollcall-dev/rollcall/internal/cli/plugins"
	"github.com/rollcall-dev/rollcall/internal/cli/publish"
	"github.com/rollcall-dev/rollcall/internal/cli/register"
	"github.com/rollcall-dev/rollcall/internal/cli/rotate"
	"github.com/rollcall-dev/rollcall/internal/cli/version"
)

// Main runs the program with the arguments of the process and returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends a command that does not end
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return Run(ctx, command.NewTerminal(streams), os.Args)
}

// Run runs the program with the arguments, the first of which is its name.
func Run(ctx context.Context, terminal *command.Terminal, args []string) int {
	root := New(terminal)
	if strings.HasPrefix(filepath.Base(args[0]), "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl mc-credential"}
	}
	root.SetArgs(args[1:])
	code, text := command.ExitCode(root.ExecuteContext(ctx))
	if text != "" {
		_, _ = fmt.Fprintf(terminal.ErrOut, "%s %s\n", terminal.PaintErr(command.Red, "error:"), command.OneLine(text))
	}
	return code
}

// New returns the root command.
func New(terminal *command.Terminal) *cobra.Command {
	env := command.NewEnv(terminal)
	var verbose bool
	root := &cobra.Command{
		Use:   "mc-credential",
		Short: "Work with an inventory of clusters and its credential plugins",
		Long: `mc-credential works with the ClusterProfiles of a hub (KEP-4322) and the credential plugins that open their clusters (KEP-5339).

Exit codes: 0 all well, 1 something failed, 2 wrong flags or arguments.`,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		Args:                       noCommand,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRun: func(c *cobra.Command, _ []string) {
			c.SetContext(withLogger(c.Context(), terminal, verbose))
		},
	}
	root.SetIn(terminal.In)
	root.SetOut(terminal.Out)
	root.SetErr(terminal.ErrOut)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return command.Usagef("%w: see '%s --help'", err, c.CommandPath())
	})
	env.AddFlags(root.PersistentFlags())
	root.PersistentFlags().BoolVarP(&verbose, "verbose", "v", false, "Print log lines on the standard error")
	root.AddCommand(
		check.New(env),
		execute.New(env),
		explain.New(env),
		get.New(env),
		gettoken.New(env),
		kubeconfig.New(env),
		list.New(env),
		plugins.New(env),
		publish.New(env),
		register.New(env),
		register.NewUnregister(env),
		rotate.New(env),
		version.New(env),
	)
	for _, c := range root.Commands() {
		usageErrors(c)
	}
	return root
}

// usageErrors makes wrong arguments of the command, and of those below it, usage errors.
func usageErrors(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			if err == nil {
				return nil
			}
			return command.Usagef("%w: see '%s --help'", err, c.CommandPath())
		}
	}
	for _, sub := range c.Commands() {
		usageErrors(sub)
	}
}

func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	suggestion := ""
	if similar := c.SuggestionsFor(args[0]); len(similar) > 0 {
		suggestion = fmt.Sprintf(" (did you mean %q?)", similar[0])
	}
	return command.Usagef("unknown command %q%s: see '%s --help'", args[0], suggestion, c.CommandPath())
}

// setLogger sets the loggers of the process, which must not be changed while goroutines of
// an earlier command may use them.
var setLogger sync.Once

// withLogger returns a context with the logger of the libraries, which is silent unless
// the user wants log lines. Errors are printed by the commands.
func withLogger(ctx context.Context, terminal *command.Terminal, verbose bool) context.Context {
	logger := funcr.New(func(prefix, args string) {
		if verbose {
			_, _ = fmt.Fprintln(terminal.ErrOut, strings.TrimSpace(prefix+" "+args))
		}
	}, funcr.Options{LogTimestamp: true})
	setLogger.Do(func() {
		stdlog.SetFlags(0)
		stdlog.SetOutput(logWriter{logger}) // net/http prints what servers send
		klog.SetLogger(logger)
		log.SetLogger(logger)
	})
	return log.IntoContext(ctx, logger)
}

// logWriter logs what is written, a line at a time.
type logWriter struct{ logger logr.Logger }

func (w logWriter) Write(line []byte) (int, error) {
	w.logger.Info(strings.TrimSpace(string(line)))
	return len(line), nil
}
