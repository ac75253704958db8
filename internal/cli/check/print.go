// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/pkg/credentials/check"
)

// result is what -o json prints.
type result struct {
	OK      bool           `json:"ok"`
	Reports []check.Report `json:"reports"`
}

// print prints the reports. It returns an error for the exit code if one failed.
func (o *options) print(format output.Format, reports []check.Report) error {
	all := result{OK: true, Reports: reports}
	for i := range reports {
		all.OK = all.OK && reports[i].OK
	}
	var err error
	switch {
	case format == output.JSON || format == output.YAML:
		err = o.output.PrintValue(o.env.Out, all)
	case len(reports) == 1:
		o.printSteps(&reports[0])
	case len(reports) > 1:
		if err = o.output.PrintTable(o.env.Out, o.table(reports)); err == nil {
			o.printFailures(reports)
		}
	}
	if err != nil {
		return err
	}
	if !all.OK {
		return command.Exit(command.ExitFailed, nil)
	}
	return nil
}

// printSteps prints all steps of a report.
func (o *options) printSteps(report *check.Report) {
	_, _ = fmt.Fprintf(o.env.Out, "%s\n", report.Profile)
	for _, step := range report.Steps {
		took := ""
		if step.Duration.Duration > 0 {
			took = o.env.Paint(command.Faint, " ("+step.Duration.Duration.String()+")")
		}
		_, _ = fmt.Fprintf(o.env.Out, " %s %s: %s%s\n", o.mark(step.Status), step.Name, step.Message, took)
		if step.Status == check.Failed {
			_, _ = fmt.Fprintf(o.env.Out, "   %s: %s\n", step.Cause, step.Remedy)
		}
	}
}

// table has a row for each report, with the columns of all steps.
func (o *options) table(reports []check.Report) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Profile"}}}
	if len(reports) > 0 {
		for _, step := range reports[0].Steps {
			table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: string(step.Name)})
		}
	}
	table.ColumnDefinitions = append(table.ColumnDefinitions, []metav1.TableColumnDefinition{
		{Name: "Expires"}, {Name: "User"}, {Name: "Plugin-Version", Priority: 1}, {Name: "Run-Time", Priority: 1}, {Name: "Server-URL", Priority: 1},
	}...)
	for i := range reports {
		report := &reports[i]
		cells := []any{report.Profile}
		for _, step := range report.Steps {
			cells = append(cells, o.cell(step.Status))
		}
		user, version := "", ""
		if report.User != nil {
			user = report.User.Name
		}
		if report.Plugin != nil {
			version = report.Plugin.Version
			if version == "" && report.Plugin.SHA256 != "" {
				version = "sha256:" + report.Plugin.SHA256[:12]
			}
		}
		run := report.Step(check.StepCredential).Duration.Duration.String()
		cells = append(cells, expires(report), cmp.Or(user, "-"), cmp.Or(version, "-"), run, cmp.Or(report.Server, "-"))
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	return table
}

// cell is the mark of a status in a table.
func (o *options) cell(status check.Status) any {
	switch {
	case !o.env.OutIsTerminal():
		return string(status)
	case status == check.Skipped:
		return o.env.Cell(command.Faint, "-")
	case status == check.OK:
		return o.env.Cell(command.Green, "✓")
	}
	return o.env.Cell(command.Red, "✗")
}

// mark is a sign on a terminal, and a word elsewhere.
func (o *options) mark(status check.Status) string {
	switch {
	case !o.env.OutIsTerminal():
		return string(status)
	case status == check.Skipped:
		return o.env.Paint(command.Faint, "-")
	}
	return o.env.Mark(status == check.OK)
}

func expires(report *check.Report) string {
	if report.Credential == nil || report.Credential.Expires == nil {
		return "-"
	}
	return duration.HumanDuration(time.Until(report.Credential.Expires.Time))
}

// printFailures prints why profiles failed, profiles of the same failure together.
func (o *options) printFailures(reports []check.Report) {
	type failure struct {
		step     check.Step
		profiles []string
	}
	var failures []*failure
	known := map[string]*failure{}
	failed := 0
	for i := range reports {
		step := reports[i].Failure()
		if step == nil {
			continue
		}
		failed++
		key := strings.Join([]string{string(step.Name), string(step.Cause), step.Message}, "\x00")
		if known[key] == nil {
			known[key] = &failure{step: *step}
			failures = append(failures, known[key])
		}
		known[key].profiles = append(known[key].profiles, reports[i].Profile)
	}
	for _, f := range failures {
		_, _ = fmt.Fprintf(o.env.Out, "\n%s %s\n  %s: %s: %s\n  Remedy: %s\n", o.mark(check.Failed), strings.Join(f.profiles, ", "),
			f.step.Name, f.step.Cause, f.step.Message, f.step.Remedy)
	}
	_, _ = fmt.Fprintf(o.env.Out, "\n%d of %d profiles failed.\n", failed, len(reports))
}
