// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
)

// follow prints objects that change until the context ends. A cluster that fails is printed
// once and tried again.
func (o *options) follow(ctx context.Context, results []*result) error {
	merged := merge(results, o.query.allNamespaces)
	if len(merged.Rows) > 0 {
		o.output.HideHeaders() // they are printed already
	}
	f := &follower{options: o, columns: merged.ColumnDefinitions, printTable: o.output.TablePrinter(o.env.Out)}
	var group sync.WaitGroup
	for _, r := range results {
		group.Go(func() { f.followCluster(ctx, r) })
	}
	group.Wait()
	return nil
}

// follower prints the changes of all clusters.
type follower struct {
	*options

	mu         sync.Mutex // guards what follows
	columns    []metav1.TableColumnDefinition
	printTable func(*metav1.Table) error
}

func (f *follower) followCluster(ctx context.Context, r *result) {
	seen := seen{}
	if r.table != nil {
		seen.changed(r.table)
	}
	failing := false
	backoff := newBackoff()
	for ctx.Err() == nil {
		if r.err == nil { // a watch that the server ends without an error goes on
			started := time.Now()
			if r.err = f.watch(ctx, r, seen); r.err == nil && time.Since(started) < time.Second {
				// Something ends watches at once: do not ask without a pause.
				r.err = errors.New("the watch ended at once")
			}
		} else if r.err = f.listAgain(ctx, r, seen); r.err == nil {
			failing, backoff = false, newBackoff()
		}
		if r.err == nil || ctx.Err() != nil {
			continue
		}
		if !failing {
			failing = true
			f.failed(r)
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
	}
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: time.Minute}
}

func (f *follower) watch(ctx context.Context, r *result, seen seen) error {
	var columns []metav1.TableColumnDefinition // of the first event: later ones have none
	return r.resource.watch(ctx, r.version, func(table *metav1.Table) {
		if len(table.ColumnDefinitions) > 0 {
			columns = table.ColumnDefinitions
		}
		table.ColumnDefinitions = columns
		for i := range table.Rows {
			r.version = metadataOf(&table.Rows[i]).ResourceVersion
		}
		table.Rows = seen.changed(table)
		f.print(r.name, table)
	})
}

// listAgain prints what has changed since.
func (f *follower) listAgain(ctx context.Context, r *result, seen seen) error {
	r.table = nil
	if err := f.read(ctx, r); err != nil {
		return err
	}
	r.table.Rows = seen.changed(r.table)
	f.print(r.name, r.table)
	return nil
}

// seen has the resource version of each object that was printed.
type seen map[types.UID]string

// changed returns the rows of objects that have not been printed in this version.
func (s seen) changed(table *metav1.Table) []metav1.TableRow {
	var rows []metav1.TableRow
	for _, row := range table.Rows {
		object := metadataOf(&row)
		if version, ok := s[object.UID]; ok && version == object.ResourceVersion {
			continue
		}
		s[object.UID] = object.ResourceVersion
		rows = append(rows, row)
	}
	return rows
}

func (f *follower) print(name string, changed *metav1.Table) {
	if len(changed.Rows) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	own := 1
	if len(f.columns) > 1 && f.columns[1].Name == namespaceColumn {
		own = 2
	}
	if len(f.columns) == own { // nothing was listed at the start
		f.columns = append(f.columns, changed.ColumnDefinitions...)
	}
	table := &metav1.Table{ColumnDefinitions: f.columns}
	appendRows(table, own, &result{name: name, table: changed})
	if err := f.printTable(table); err != nil {
		_, _ = fmt.Fprintln(f.env.ErrOut, err)
	}
}

func (f *follower) failed(r *result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = fmt.Fprintf(f.env.ErrOut, "%s %s: %s, trying again\n", f.env.PaintErr(command.Red, "✗"), command.OneLine(r.name), describe(r.err))
}
