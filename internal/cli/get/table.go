// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const namespaceColumn = "Namespace"

// missing is the cell of a column that a cluster does not have.
const missing = "-"

// merge returns one table of all results, with the cluster, and the namespace if objects of
// several are asked for. Its columns are those of all clusters, by name: other versions of
// Kubernetes or of a CRD have others.
func merge(results []*result, allNamespaces bool) *metav1.Table {
	merged := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Cluster"}}}
	namespaces := allNamespaces && slices.ContainsFunc(results, func(r *result) bool { return r.resource != nil && r.resource.namespaced })
	if namespaces {
		merged.ColumnDefinitions = append(merged.ColumnDefinitions, metav1.TableColumnDefinition{Name: namespaceColumn})
	}
	own := len(merged.ColumnDefinitions)
	for _, r := range results {
		if r.table == nil {
			continue
		}
		for _, column := range r.table.ColumnDefinitions {
			if position(merged.ColumnDefinitions[own:], column.Name) < 0 {
				merged.ColumnDefinitions = append(merged.ColumnDefinitions, column)
			}
		}
	}
	for _, r := range results {
		if r.table != nil {
			appendRows(merged, own, r)
		}
	}
	return merged
}

func appendRows(merged *metav1.Table, own int, r *result) {
	positions := make([]int, 0, len(merged.ColumnDefinitions)-own)
	for _, column := range merged.ColumnDefinitions[own:] {
		positions = append(positions, position(r.table.ColumnDefinitions, column.Name))
	}
	for _, row := range r.table.Rows {
		cells := []any{r.name}
		if own > 1 {
			cells = append(cells, namespaceOf(&row))
		}
		for _, i := range positions {
			if i < 0 || i >= len(row.Cells) {
				cells = append(cells, missing)
			} else {
				cells = append(cells, row.Cells[i])
			}
		}
		merged.Rows = append(merged.Rows, metav1.TableRow{Cells: cells})
	}
}

func position(columns []metav1.TableColumnDefinition, name string) int {
	return slices.IndexFunc(columns, func(c metav1.TableColumnDefinition) bool { return c.Name == name })
}

func namespaceOf(row *metav1.TableRow) string {
	if namespace := metadataOf(row).Namespace; namespace != "" {
		return namespace
	}
	return missing
}

// metadataOf returns the metadata of a row's object, which servers add by default.
func metadataOf(row *metav1.TableRow) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	_ = json.Unmarshal(row.Object.Raw, object) // without it, the object is empty
	return object
}
