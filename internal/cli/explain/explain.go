// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain is the command that prints what would be run for a profile.
package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

type options struct {
	env     *command.Env
	sources sources.Flags
	output  output.Flags
}

// text is the default format.
const text output.Format = "text"

// New returns the command.
func New(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "explain PROFILE",
		Short: "Print what would run to obtain a credential",
		Long: `Print which provider is used for a profile and why, and what would run: the command, its arguments, its environment and the request that the plugin gets. What the profile asks for and the provider file does not allow is printed as dropped. Nothing is run, and values that may be secrets are replaced by "[redacted]".

Exit codes: 0 all well, 1 the cluster cannot be reached, 2 wrong flags or arguments.`,
		Example: `  # What would run for the profile east
  mc-credential explain east

  # With the whole environment, for a script
  mc-credential explain fleet/east -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	o.sources.AddFlags(c)
	o.output.AddFlags(c, text, output.JSON, output.YAML)
	return c
}

func (o *options) run(ctx context.Context, name string) error {
	format, err := o.output.Format()
	if err != nil {
		return err
	}
	opened, err := o.sources.Open(ctx, o.env)
	if err != nil {
		return err
	}
	defer opened.Close()
	method, err := opened.Credentials()
	if err != nil {
		return err
	}
	profiles, err := opened.Find(ctx, name)
	if err != nil {
		return err
	}
	explanation, refused := credentials.Explain(ctx, method, profiles[0])
	if format == text {
		o.print(explanation)
	} else if err := o.output.PrintValue(o.env.Out, explanation); err != nil {
		return err
	}
	return refused
}

// print prints the explanation as text.
func (o *options) print(e *credentials.Explanation) {
	w := o.env.Out
	line(w, "Profile", e.Profile)
	if e.Provider == "" && len(e.Candidates) > 0 {
		line(w, "Provider", "", o.env.Paint(command.Red, "none"))
	}
	for _, candidate := range e.Candidates {
		label := "  not used"
		if candidate.Chosen {
			label = "Provider"
		}
		line(w, label, fmt.Sprintf("%s: %s", candidate.Name, candidate.Reason))
	}
	line(w, "Server", e.Server)
	line(w, "Proxy", e.ProxyURL)
	line(w, "TLS server name", e.TLSServerName)
	if e.InsecureSkipTLSVerify {
		line(w, "Certificate", "", o.env.Paint(command.Red, "not verified"))
	}
	if e.Plugin == nil {
		line(w, "Credential", string(e.Kind))
		return
	}
	o.printPlugin(w, e.Plugin)
}

func (o *options) printPlugin(w io.Writer, run *credentials.PluginExplanation) {
	if run.InProcess != "" {
		line(w, "Plugin", strings.TrimSpace(run.InProcess+" "+run.Version)+", in this process")
	} else {
		line(w, "Command", run.Command)
		line(w, "Executable", run.Path)
	}
	if run.Missing != "" {
		line(w, "  missing", "", o.env.Paint(command.Red, command.OneLine(run.Missing)))
		line(w, "  to install", run.InstallHint)
	}
	for i, digest := range run.SHA256 {
		line(w, first(i, "SHA-256"), digest)
	}
	for i, arg := range run.Args {
		line(w, first(i, "Arguments"), quote(arg.Value), o.faint("("+arg.From+")"))
	}
	var inherited []string
	printed := 0
	for _, variable := range run.Env {
		switch variable.From {
		case "process":
			inherited = append(inherited, variable.Name)
			continue
		case "request":
			continue // printed below
		}
		line(w, first(printed, "Environment"), variable.Name+"="+variable.Value, o.faint("("+variable.From+")"))
		printed++
	}
	if len(inherited) > 0 {
		line(w, first(printed, "Environment"), fmt.Sprintf("%d variables of this process: %s", len(inherited), strings.Join(inherited, ", ")))
	}
	for i, dropped := range run.Dropped {
		what := strings.Join(append(append([]string{}, dropped.Args...), dropped.Variables...), " ")
		line(w, first(i, "Dropped"), strings.TrimSpace(fmt.Sprintf("%s: %s", dropped.Extension, what))+": "+dropped.Reason)
	}
	var request bytes.Buffer
	if json.Indent(&request, run.Request, "  ", "  ") == nil && request.Len() > 0 {
		_, _ = fmt.Fprintf(w, "Request (KUBERNETES_EXEC_INFO):\n  %s\n", command.Clean(request.String()))
	}
}

func (o *options) faint(text string) string { return o.env.Paint(command.Faint, text) }

// first returns the label for the first of several lines.
func first(i int, label string) string {
	if i > 0 {
		return ""
	}
	return label
}

// line prints a labelled value and what belongs to it in colour, unless there is neither.
// Authors of profiles choose parts of values.
func line(w io.Writer, label, value string, colored ...string) {
	parts := colored
	if value != "" {
		parts = append([]string{command.OneLine(value)}, colored...)
	}
	if len(parts) == 0 {
		return
	}
	if label != "" {
		label += ":"
	}
	_, _ = fmt.Fprintf(w, "%-17s %s\n", label, strings.Join(parts, "  "))
}

// quote returns an argument as a shell would need it.
func quote(arg string) string {
	if arg != "" && !strings.ContainsAny(arg, " \t\n\"'\\$`*?[](){}<>|&;#~!") {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
