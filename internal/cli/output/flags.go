// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
)

// Format is a value of -o.
type Format string

// The formats. Table is the default.
const (
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	YAML  Format = "yaml"
	Name  Format = "name"
)

// Flags are -o and --no-headers.
type Flags struct {
	format    string
	noHeaders bool
	formats   []Format
}

// AddFlags adds the flags to the command, which prints in these formats. The first one is
// the default.
func (f *Flags) AddFlags(c *cobra.Command, formats ...Format) {
	f.formats = formats
	names := make([]string, len(formats))
	for i, format := range formats {
		names[i] = string(format)
	}
	c.Flags().StringVarP(&f.format, "output", "o", names[0], "Output format: one of "+strings.Join(names, ", "))
	if slices.Contains(formats, Table) {
		c.Flags().BoolVar(&f.noHeaders, "no-headers", false, "Print tables without headers")
	}
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// Format returns the chosen format, or an error that lists the valid ones.
func (f *Flags) Format() (Format, error) {
	if slices.Contains(f.formats, Format(f.format)) {
		return Format(f.format), nil
	}
	names := make([]string, len(f.formats))
	for i, format := range f.formats {
		names[i] = string(format)
	}
	return "", command.Usagef("invalid --output %q: valid values are %s", f.format, strings.Join(names, ", "))
}

// PrintTable prints a table. Columns with a priority above 0 are for Wide.
func (f *Flags) PrintTable(w io.Writer, table *metav1.Table) error {
	return f.TablePrinter(w)(table)
}

// TablePrinter returns a function that prints tables of the same columns: their headers
// once, and no column narrower than before.
func (f *Flags) TablePrinter(w io.Writer) func(table *metav1.Table) error {
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: Format(f.format) == Wide, NoHeaders: f.noHeaders})
	colors := &colorWriter{next: w}
	aligned := printers.GetNewTabWriter(colors)
	return func(table *metav1.Table) error {
		table = colors.prepare(table)
		if err := printer.PrintObj(table, aligned); err != nil {
			return err
		}
		return aligned.Flush()
	}
}

// HideHeaders is --no-headers.
func (f *Flags) HideHeaders() { f.noHeaders = true }

// PrintObject prints an object as JSON, YAML or name, as kubectl does.
func (f *Flags) PrintObject(w io.Writer, object runtime.Object) error {
	var printer printers.ResourcePrinter
	switch Format(f.format) {
	case JSON:
		printer = &printers.JSONPrinter{}
	case YAML:
		printer = &printers.YAMLPrinter{}
	case Name:
		printer = &printers.NamePrinter{}
	default:
		return fmt.Errorf("objects are not printed as %s", f.format)
	}
	return printer.PrintObj(object, w)
}

// PrintValue prints a value that is no object as JSON or YAML.
func (f *Flags) PrintValue(w io.Writer, value any) error {
	data, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if Format(f.format) == YAML {
		if data, err = yaml.JSONToYAML(data); err != nil {
			return err
		}
	}
	_, err = w.Write(data)
	return err
}
