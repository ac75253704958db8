// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
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
	ui     *ui
	keep   bool
	source source

	root   string // folder of Rollcall's source tree
	assets string // folder of kube-apiserver and etcd
	bin    string // folder of the programs built
	dir    string // folder of this run's files, removed at the end

	europe, america, asia *realfleet.Member
	added                 []*realfleet.Member // that are in the source now
	controller            *process
	flags                 []string       // with which the controller finds the clusters
	tokens                []string       // of the controller, and revoked ones
	switches              map[string]int // expected, by cluster name

	mu      sync.Mutex // guards the fields below
	planes  []*realfleet.ControlPlane
	members []*realfleet.Member
}

func newQuickstart(u *ui, s source, keep bool) *quickstart {
	return &quickstart{ui: u, source: s, keep: keep, switches: map[string]int{}}
}

// run runs all steps and stops what they started. It has printed the errors that
// it returns.
func (q *quickstart) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, q.cleanUp(ctx)) }()
	started := time.Now()
	words := q.source.terms()
	q.ui.Say("Rollcall quickstart: one controller for all clusters with a %s in a %s\n", words.entry, words.place)
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
	words := q.source.terms()
	q.ui.Say("\nSuccess, in %.0fs. The controller was configured only for the %s, and never restarted.", took.Seconds(), words.place)
	q.ui.Say("Its complete source is in %s. The same with other providers:\n", strings.TrimPrefix(words.programs[0], "./"))
	for _, s := range sources {
		if reflect.TypeOf(s.new()) != reflect.TypeOf(q.source) {
			other := s.new().terms()
			q.ui.Say("  make quickstart FROM=%-12s a %s in a %s", s.name, other.entry, other.place)
		}
	}
}

// program is the path of the controller's program.
func (q *quickstart) program() string {
	return filepath.Join(q.bin, path.Base(q.source.terms().programs[0]))
}

// leaveRunning prints commands to try and what the controller prints, until the
// context ends.
func (q *quickstart) leaveRunning(ctx context.Context) {
	q.ui.Say("\nEverything keeps running until Ctrl-C. Try this in another terminal:\n")
	q.ui.Say("  %s", q.source.look())
	for _, m := range q.added {
		q.ui.Say("  kubectl --kubeconfig %s create configmap hello --from-literal=from=%s", m.Kubeconfig, m.Name)
	}
	q.ui.Say("\nRun the controller once more, or your own with the same flags:\n")
	q.ui.Say("  cd %s", q.dir)
	q.ui.Say("  %s %s", q.program(), strings.Join(q.flags, " "))
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
	q.stopLater(cp)
	return cp, nil
}

// stopLater makes cleanUp stop the control plane.
func (q *quickstart) stopLater(cp *realfleet.ControlPlane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.planes = append(q.planes, cp)
}

// closeLater makes cleanUp close the member's Network.
func (q *quickstart) closeLater(m *realfleet.Member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.members = append(q.members, m)
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
	q.closeLater(m)
	return m, m.AllowIdentity(ctx)
}
