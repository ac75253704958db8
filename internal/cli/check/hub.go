// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/inventory/lint"
)

// hubResult is what -o json prints.
type hubResult struct {
	OK       bool           `json:"ok"`
	Profiles int            `json:"profiles"`
	Findings []lint.Finding `json:"findings"`
}

// checkHub prints what is wrong with the inventory.
func (o *options) checkHub(ctx context.Context, opened *sources.Inventory, format output.Format) error {
	options := lint.Options{}
	if opened.Namespace != "" {
		options.Namespaces = []string{opened.Namespace}
	}
	if path := o.sources.Credentials.ProviderFile; path != "" {
		file, err := providerfile.Load(path)
		if err != nil {
			return err
		}
		options.Providers = []string{}
		for i := range file.Providers {
			options.Providers = append(options.Providers, file.Providers[i].Name)
		}
	} else {
		_, _ = fmt.Fprintln(o.env.ErrOut, "No provider file: not checking whether profiles have a provider.")
	}
	limited, cancel := context.WithTimeout(ctx, o.sources.ListTimeout)
	defer cancel()
	profiles, decisions, err := hub.List(limited, opened.HubConfig, opened.Namespace)
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the inventory was not listed within %s", o.sources.ListTimeout)
		}
		return err
	}
	result := hubResult{OK: true, Profiles: len(profiles), Findings: lint.Profiles(profiles, decisions, options)}
	for _, finding := range result.Findings {
		result.OK = result.OK && finding.Severity != lint.Error
	}
	if format == output.JSON || format == output.YAML {
		if result.Findings == nil {
			result.Findings = []lint.Finding{}
		}
		if err := o.output.PrintValue(o.env.Out, result); err != nil {
			return err
		}
	} else {
		o.printFindings(&result)
	}
	if !result.OK {
		return command.Exit(command.ExitFailed, nil)
	}
	return nil
}

func (o *options) printFindings(result *hubResult) {
	count := map[lint.Severity]int{}
	for _, finding := range result.Findings {
		count[finding.Severity]++
		color := map[lint.Severity]command.Color{lint.Error: command.Red, lint.Warning: command.Yellow, lint.Info: command.Faint}[finding.Severity]
		_, _ = fmt.Fprintf(o.env.Out, "%s %s %s: %s\n", o.env.Paint(color, string(finding.Severity)+":"),
			finding.Kind, command.OneLine(strings.Join(finding.Objects, ", ")), command.OneLine(finding.Message))
		if finding.Remedy != "" {
			_, _ = fmt.Fprintf(o.env.Out, "  Remedy: %s\n", command.OneLine(finding.Remedy))
		}
	}
	_, _ = fmt.Fprintf(o.env.Out, "%d profiles: %d errors, %d warnings.\n", result.Profiles, count[lint.Error], count[lint.Warning])
}
