// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

// Messages in the controller's log. All but the last are about a cluster.
const (
	engaged     = "Cluster engaged"
	disengaged  = "Cluster disengaged"
	switched    = "Switched cluster connection"
	kept        = "Cannot use the cluster's new access, keeping the current connection"
	duplicate   = "Profile is a duplicate, its cluster has another name"
	tookOver    = "Profile removed, its cluster keeps its name and goes on with another profile"
	fileChanged = "Provider file changed"
)

// reconciledLine is the beginning of the line that the controller prints for a
// ConfigMap in the namespace default.
func (q *quickstart) reconciledLine(m *realfleet.Member, configMap string) string {
	return fmt.Sprintf("ConfigMap default/%s in cluster %q", configMap, q.source.clusterName(m))
}

// expect waits for a line of the controller that matches and returns it. Lines
// already printed count.
func (q *quickstart) expect(ctx context.Context, r *report, lines *record, description string, match func(line string) bool) (string, error) {
	r.Now("waiting for %s", description)
	defer r.Now("")
	ctx, cancel := context.WithTimeoutCause(ctx, waitLimit, fmt.Errorf("timed out after %v", waitLimit))
	defer cancel()
	line, err := q.controller.Await(ctx, lines, 0, match)
	if err != nil {
		return "", fmt.Errorf("waiting for %s: %w", description, err)
	}
	return line, nil
}

// expectReconciled waits for the controller's line about the ConfigMap and quotes
// it.
func (q *quickstart) expectReconciled(ctx context.Context, r *report, m *realfleet.Member, configMap string) error {
	beginning := q.reconciledLine(m, configMap)
	line, err := q.expect(ctx, r, q.controller.stdout, fmt.Sprintf("the line “%s …”", beginning),
		func(line string) bool { return strings.HasPrefix(line, beginning) })
	if err == nil {
		r.Quote("%s", line)
	}
	return err
}

// expectLogged waits for the controller's log line about the cluster and quotes
// it.
func (q *quickstart) expectLogged(ctx context.Context, r *report, m *realfleet.Member, message string, fields ...string) error {
	description := fmt.Sprintf("the log line “%s” for %s", message, q.source.clusterName(m))
	line, err := q.expect(ctx, r, q.controller.stderr, description, logs(message, q.source.clusterName(m)))
	if err == nil {
		r.Quote("%s", shorten(line, append([]string{"cluster"}, fields...)...))
	}
	return err
}

// expectUntouched verifies that each cluster was engaged once, and not disengaged
// since, and that its connection was switched only as expected.
func (q *quickstart) expectUntouched(members ...*realfleet.Member) error {
	for _, m := range members {
		for message, want := range map[string]int{engaged: 1, disengaged: 0, switched: q.switches[q.source.clusterName(m)]} {
			if lines := q.controller.stderr.Matching(logs(message, q.source.clusterName(m))); len(lines) != want {
				return fmt.Errorf("expected the log line “%s” for %s %d times, found it %d times",
					message, q.source.clusterName(m), want, len(lines))
			}
		}
	}
	return nil
}
