// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

// waitLimit is how long a step waits, much longer than it takes.
const waitLimit = time.Minute

// quickstart is one run of the program.
type quickstart struct {
	ui   *ui
	keep bool

	root   string // folder of Rollcall's source tree
	crd    string // path of the CRD of ClusterProfiles
	assets string // folder of kube-apiserver and etcd
	bin    string // folder of the programs built
	dir    string // folder of this run's files, removed at the end

	hub                   *realfleet.Hub
	europe, america, asia *realfleet.Member
	controller            *process
	hubTokens             []string // of the controller and the plugin
	revoked               []string
	switches              map[string]int // expected, by cluster name

	mu      sync.Mutex // guards the fields below
	planes  []*realfleet.ControlPlane
	members []*realfleet.Member
}

func newQuickstart(u *ui, keep bool) *quickstart {
	return &quickstart{ui: u, keep: keep, switches: map[string]int{}}
}

// run runs all steps and stops what they started. It has printed the errors that
// it returns.
func (q *quickstart) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, q.cleanUp(ctx)) }()
	started := time.Now()
	q.ui.Say("Rollcall quickstart: one controller for all clusters of an inventory\n")
	for _, s := range q.steps() {
		err = q.ui.Step(ctx, s.doing, s.done, func(ctx context.Context, r *report) error {
			return q.explain(s.do(ctx, r))
		})
		if err != nil {
			break
		}
	}
	if err == nil {
		q.summarize(time.Since(started))
	}
	if q.keep && q.controller != nil && ctx.Err() == nil {
		q.leaveRunning(ctx)
	}
	return err
}

// explain adds the controller's last log lines to an error.
func (q *quickstart) explain(err error) error {
	if err == nil || q.controller == nil {
		return err
	}
	logged, _ := q.controller.stderr.From(0)
	lines := lastLines(logged)
	if len(lines) == 0 {
		return err
	}
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&text, "\n│ %s", shorten(line))
	}
	return fmt.Errorf("%w\nThe controller's last log lines:%s", err, text.String())
}

func (q *quickstart) summarize(took time.Duration) {
	q.ui.Say("\nSuccess, in %.0fs. The controller was configured once, only for the hub, and never restarted.", took.Seconds())
	q.ui.Say("Its complete source is in examples/%s.", controllerProgram)
}

// leaveRunning prints commands to try and what the controller prints, until the
// context ends.
func (q *quickstart) leaveRunning(ctx context.Context) {
	q.ui.Say("\nEverything keeps running until Ctrl-C. Try this in another terminal:\n")
	q.ui.Say("  kubectl --kubeconfig %s get clusterprofiles -A", q.hub.Kubeconfig)
	for _, m := range q.members {
		if m.HasProfile {
			q.ui.Say("  kubectl --kubeconfig %s create configmap hello --from-literal=from=%s", m.Kubeconfig, m.Name)
		}
	}
	q.ui.Say("\nRun your own controller as well: after make build, use these flags:\n")
	q.ui.Say("  --kubeconfig=%s --clusterprofile-provider-file=%s --credential-plugin-dir=%s",
		filepath.Join(q.dir, controllerKubeconfigName), filepath.Join(q.dir, providerFileName), filepath.Join(q.root, "bin"))
	q.ui.Say("\nThe controller's log is in %s/controller.log. It prints:\n", q.dir)
	seen := q.controller.stdout.Len()
	everything := func(string) bool { return true }
	for {
		line, err := q.controller.Await(ctx, q.controller.stdout, seen, everything)
		if err != nil {
			if ctx.Err() == nil {
				q.ui.Say("   %v", err)
			}
			return
		}
		seen++
		q.ui.Say("   │ %s", line)
	}
}

// cleanUp stops everything, even if the context has ended.
func (q *quickstart) cleanUp(ctx context.Context) error {
	if q.dir == "" {
		return nil
	}
	q.ui.Say("")
	return q.ui.Step(context.WithoutCancel(ctx), "Stopping everything", "Everything is stopped, and the files are deleted",
		func(context.Context, *report) error {
			var errs []error
			if q.controller != nil {
				errs = append(errs, q.controller.Stop())
			}
			for _, m := range q.members {
				m.Network.Close()
			}
			var group errgroup.Group
			stopped := make([]error, len(q.planes))
			for i, cp := range q.planes {
				group.Go(func() error {
					stopped[i] = cp.Stop()
					return nil
				})
			}
			_ = group.Wait()
			errs = append(errs, stopped...)
			return errors.Join(append(errs, os.RemoveAll(q.dir))...)
		})
}

// startControlPlane starts a control plane that cleanUp stops.
func (q *quickstart) startControlPlane(ctx context.Context, name string) (*realfleet.ControlPlane, error) {
	cp, err := realfleet.StartControlPlane(ctx, name, q.assets, q.dir)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.planes = append(q.planes, cp)
	return cp, nil
}

// startMember starts a cluster and sets it up for the controller.
func (q *quickstart) startMember(ctx context.Context, name string) (*realfleet.Member, error) {
	cp, err := q.startControlPlane(ctx, name)
	if err != nil {
		return nil, err
	}
	m, err := realfleet.NewMember(ctx, cp)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.members = append(q.members, m)
	return m, nil
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
	beginning := reconciledLine(m, configMap)
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
	description := fmt.Sprintf("the log line “%s” for %s", message, clusterName(m))
	line, err := q.expect(ctx, r, q.controller.stderr, description, logs(message, clusterName(m)))
	if err == nil {
		r.Quote("%s", shorten(line, append([]string{"cluster"}, fields...)...))
	}
	return err
}

// expectUntouched verifies that each cluster was engaged once, and not disengaged
// since, and that its connection was switched only as expected.
func (q *quickstart) expectUntouched(members ...*realfleet.Member) error {
	for _, m := range members {
		for message, want := range map[string]int{engaged: 1, disengaged: 0, switched: q.switches[clusterName(m)]} {
			if lines := q.controller.stderr.Matching(logs(message, clusterName(m))); len(lines) != want {
				return fmt.Errorf("expected the log line “%s” for %s %d times, found it %d times",
					message, clusterName(m), want, len(lines))
			}
		}
	}
	return nil
}
