// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
)

func TestTableColorsAndHostileCells(t *testing.T) {
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Health"}, {Name: "Age"}},
		Rows: []metav1.TableRow{
			{Cells: []any{"a", command.Painted{Color: command.Green, Text: "Healthy"}, "1s"}},
			{Cells: []any{"\x1b[31mb\u009b\ue001", command.Painted{Color: command.Red, Text: "x\x1b[0m"}, int64(2)}},
			{Cells: []any{"c", "none", "3s"}},
		},
	}
	var out bytes.Buffer
	flags := Flags{format: string(Table)}
	if err := flags.PrintTable(&out, table); err != nil {
		t.Fatal(err)
	}
	want := "NAME                    HEALTH     AGE\n" +
		"a                       \x1b[32mHealthy\x1b[0m    1s\n" +
		"\\x1b[31mb\\u009b\\ue001   \x1b[31mx\\x1b[0m\x1b[0m   2\n" +
		"c                       none       3s\n"
	if out.String() != want {
		t.Errorf("printed\n%q, not\n%q", out.String(), want)
	}
}
