// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func tableOf(columns []string, rows ...metav1.TableRow) *metav1.Table {
	table := &metav1.Table{Rows: rows}
	for _, column := range columns {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: column})
	}
	return table
}

func TestMerge(t *testing.T) {
	in := func(namespace string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(`{"metadata":{"namespace":"` + namespace + `"}}`)}
	}
	namespaced, clusterScoped := &resource{namespaced: true}, &resource{}
	tests := []struct {
		name          string
		results       []*result
		allNamespaces bool
		columns       []string
		rows          [][]any
	}{
		{
			name: "columns that only one cluster has are empty for the others",
			results: []*result{
				{name: "a", resource: namespaced, table: tableOf([]string{"Name", "Old"}, metav1.TableRow{Cells: []any{"x", "1"}})},
				{name: "b", resource: namespaced, table: tableOf([]string{"Name", "New"}, metav1.TableRow{Cells: []any{"y", "2"}})},
			},
			columns: []string{"Cluster", "Name", "Old", "New"},
			rows:    [][]any{{"a", "x", "1", "-"}, {"b", "y", "-", "2"}},
		},
		{
			name:          "the namespace is shown if there can be several",
			allNamespaces: true,
			results:       []*result{{name: "a", resource: namespaced, table: tableOf([]string{"Name"}, metav1.TableRow{Cells: []any{"x"}, Object: in("web")})}},
			columns:       []string{"Cluster", "Namespace", "Name"},
			rows:          [][]any{{"a", "web", "x"}},
		},
		{
			name:          "cluster-scoped objects have no namespace",
			allNamespaces: true,
			results:       []*result{{name: "a", resource: clusterScoped, table: tableOf([]string{"Name"}, metav1.TableRow{Cells: []any{"x"}})}},
			columns:       []string{"Cluster", "Name"},
			rows:          [][]any{{"a", "x"}},
		},
		{
			name: "a cluster that failed has no row, and a row without a cell does not panic",
			results: []*result{
				{name: "a"},
				{name: "b", resource: namespaced, table: tableOf([]string{"Name", "Age"}, metav1.TableRow{Cells: []any{"y"}})},
			},
			columns: []string{"Cluster", "Name", "Age"},
			rows:    [][]any{{"b", "y", "-"}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			merged := merge(test.results, test.allNamespaces)
			var columns []string
			for _, column := range merged.ColumnDefinitions {
				columns = append(columns, column.Name)
			}
			g.Expect(columns).To(Equal(test.columns))
			var rows [][]any
			for _, row := range merged.Rows {
				rows = append(rows, row.Cells)
			}
			g.Expect(rows).To(Equal(test.rows))
		})
	}
}

func TestChangedRows(t *testing.T) {
	g := NewWithT(t)
	row := func(uid, version string) metav1.TableRow {
		return metav1.TableRow{Object: runtime.RawExtension{Raw: []byte(`{"metadata":{"uid":"` + uid + `","resourceVersion":"` + version + `"}}`)}}
	}
	printed := seen{}
	g.Expect(printed.changed(tableOf(nil, row("a", "1"), row("b", "2")))).To(HaveLen(2))
	g.Expect(printed.changed(tableOf(nil, row("a", "1"), row("b", "3"), row("c", "4")))).To(Equal([]metav1.TableRow{row("b", "3"), row("c", "4")}))
}
