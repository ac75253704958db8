// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

// step is one step of the quickstart.
type step struct {
	doing, done string
	do          func(ctx context.Context, r *report) error
}

// updates is how often each entry is updated.
const updates = 10

func (q *quickstart) steps() []step {
	words := q.source.terms()
	entry, place := words.entry, "the "+words.place
	h, isHub := q.source.(*hub)

	steps := []step{
		{"Preparing kube-apiserver and etcd", "kube-apiserver and etcd are ready", q.prepare},
		{"Building the programs", "The programs are built", q.build},
		{"Starting " + words.clusters, capitalized(words.clusters) + " are running: europe and america", q.startClusters},
		{"Adding both clusters to " + place, "Both clusters have a " + entry + " in " + place, q.addMembers},
		{"Starting the controller", "The controller reconciles the ConfigMaps of both", q.startController},
		{"Adding a third cluster, asia", "The running controller also reconciles a third cluster, asia", q.addCluster},
		{"Cutting off asia", "asia was unreachable, which did not affect the other clusters", q.cutOff},
		{"Giving america a wrong address", "america's new address does not respond, its connection is kept", q.breakAccess},
		{"Replacing america's token", "america has a new token, the old one is revoked", q.replaceToken},
		{
			fmt.Sprintf("Updating each %s %d times", entry, updates),
			fmt.Sprintf("%d updates of each %s caused no reconnects", updates, entry), q.touch,
		},
	}
	leaks := "The controller's output contains no token"
	if isHub {
		steps = append(steps, step{
			"Deleting the first of two profiles of asia",
			"asia's first profile is deleted, its cluster goes on with the second",
			func(ctx context.Context, r *report) error { return q.deleteFirstProfile(ctx, r, q.asia, h.asiaAgain) },
		})
		leaks = "The controller's output and the profiles contain no token"
	}
	return append(steps,
		step{"Removing europe", "europe is disengaged, the other clusters are not affected", q.removeCluster},
		step{"Searching for leaked tokens", leaks, q.searchTokens},
	)
}

func capitalized(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// prepare finds or builds the programs of a control plane.
func (q *quickstart) prepare(ctx context.Context, r *report) error {
	var err error
	q.root, err = moduleDir(ctx, r, "", "github.com/rollcall-dev/rollcall")
	if errors.Is(err, exec.ErrNotFound) {
		return err
	}
	if err != nil {
		return fmt.Errorf("the quickstart must run in Rollcall's source tree: %w", err)
	}
	q.assets, err = goTool(ctx, r, filepath.Join(q.root, "hack", "controlplane"), "run", "-mod=readonly", "-buildvcs=false", ".")
	r.Quote("%s", q.assets)
	return err
}

func moduleDir(ctx context.Context, r *report, dir, module string) (string, error) {
	return goTool(ctx, r, dir, "list", "-m", "-f", "{{.Dir}}", module)
}

// build builds the programs.
func (q *quickstart) build(ctx context.Context, r *report) error {
	q.bin = filepath.Join(q.root, "bin")
	programs := q.source.terms().programs
	arguments := append([]string{"build", "-o", q.bin + string(filepath.Separator)}, programs...)
	for _, program := range programs {
		r.Quote("%s", program)
	}
	_, err := goTool(ctx, r, q.root, arguments...)
	return err
}

// startClusters starts the control planes concurrently.
func (q *quickstart) startClusters(ctx context.Context, r *report) (err error) {
	if q.dir, err = os.MkdirTemp("", "rollcall-quickstart-"); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return q.source.setUp(ctx, r, q) })
	group.Go(func() (err error) {
		q.europe, err = q.startMember(ctx, "europe")
		return err
	})
	group.Go(func() (err error) {
		q.america, err = q.startMember(ctx, "america")
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	r.Explain("Each is a kube-apiserver with its own etcd. europe and america have a service account")
	r.Explain("that can only read ConfigMaps, and the UID of the cluster.")
	return nil
}

// addMembers adds the first two members.
func (q *quickstart) addMembers(ctx context.Context, r *report) error {
	for _, line := range q.source.terms().explanation {
		r.Explain("%s", line)
	}
	for _, m := range []*realfleet.Member{q.europe, q.america} {
		if err := m.CreateConfigMap(ctx, "first"); err != nil {
			return err
		}
		if err := q.add(ctx, r, m); err != nil {
			return err
		}
	}
	return nil
}

// add adds the member to the source.
func (q *quickstart) add(ctx context.Context, r *report, m *realfleet.Member) error {
	entry, err := q.source.add(ctx, m)
	if err != nil {
		return err
	}
	r.Quote("%s: %s", entry, m.Server())
	q.added = append(q.added, m)
	return nil
}

// remove removes the member from the source.
func (q *quickstart) remove(ctx context.Context, m *realfleet.Member) error {
	q.added = slices.DeleteFunc(q.added, func(added *realfleet.Member) bool { return added == m })
	return q.source.remove(ctx, m)
}

// startController starts the controller and waits until it reconciles both members.
func (q *quickstart) startController(ctx context.Context, r *report) (err error) {
	if q.flags, q.tokens, err = q.source.flags(ctx); err != nil {
		return err
	}
	// The highest verbosity, to verify that no token is ever logged.
	flags := append([]string{"--zap-log-level=10", "--v=10"}, q.flags...)
	q.controller, err = startProcess("controller", q.dir, q.program(), flags...)
	if err != nil {
		return err
	}
	r.Explain("%s", q.source.terms().permissions)
	for _, m := range []*realfleet.Member{q.europe, q.america} {
		if err := q.expectLogged(ctx, r, m, engaged, "accessProvider"); err != nil {
			return err
		}
		if err := q.expectReconciled(ctx, r, m, "first"); err != nil {
			return err
		}
	}
	return nil
}

// addCluster starts a member and adds it.
func (q *quickstart) addCluster(ctx context.Context, r *report) (err error) {
	r.Now("starting it")
	if h, isHub := q.source.(*hub); isHub {
		q.asia, err = q.startTrustingMember(ctx, r, h, "asia")
	} else {
		q.asia, err = q.startMember(ctx, "asia")
	}
	if err != nil {
		return err
	}
	if err := q.asia.CreateConfigMap(ctx, "first"); err != nil {
		return err
	}
	added := time.Now()
	if err := q.add(ctx, r, q.asia); err != nil {
		return err
	}
	if err := q.expectLogged(ctx, r, q.asia, engaged, "accessProvider"); err != nil {
		return err
	}
	if err := q.expectReconciled(ctx, r, q.asia, "first"); err != nil {
		return err
	}
	r.Explain("From its %s to its first reconcile: %v.", q.source.terms().entry, time.Since(added).Round(10*time.Millisecond))
	return nil
}

// cutOff makes a member unreachable for a moment.
func (q *quickstart) cutOff(ctx context.Context, r *report) error {
	const configMap = "during-the-outage"
	m := q.asia
	m.Network.SetDown(true)
	for _, m := range []*realfleet.Member{q.asia, q.europe, q.america} {
		if err := m.CreateConfigMap(ctx, configMap); err != nil {
			return err
		}
	}
	for _, m := range []*realfleet.Member{q.europe, q.america} {
		if err := q.expectReconciled(ctx, r, m, configMap); err != nil {
			return err
		}
	}
	if unexpected := q.reconciledLine(m, configMap); q.controller.stdout.Contains(unexpected) {
		return fmt.Errorf("unexpected line “%s …”: the cluster is unreachable", unexpected)
	}
	m.Network.SetDown(false)
	r.Explain("When it responds again, it catches up:")
	if err := q.expectReconciled(ctx, r, m, configMap); err != nil {
		return err
	}
	return q.expectUntouched(q.europe, q.america, q.asia)
}

// breakAccess gives a member an address at which nothing listens, and then its own one
// again.
func (q *quickstart) breakAccess(ctx context.Context, r *report) error {
	m := q.america
	nowhere, err := m.NewNetwork()
	if err != nil {
		return err
	}
	nowhere.Close()
	if err := q.source.setAccess(ctx, m, "https://"+nowhere.Addr()); err != nil {
		return err
	}
	if err := q.expectLogged(ctx, r, m, kept, "error"); err != nil {
		return err
	}
	if err := m.CreateConfigMap(ctx, "after-the-wrong-address"); err != nil {
		return err
	}
	if err := q.expectReconciled(ctx, r, m, "after-the-wrong-address"); err != nil {
		return err
	}
	r.Explain("It is retried with backoff, and used when it works. Here, the old address is put back.")
	return errors.Join(q.source.setAccess(ctx, m, m.Server()), q.expectUntouched(m))
}

// replaceToken replaces a member's token and revokes the old one. Open watches
// survive that, so it also closes their connections: the controller has to
// authenticate again.
func (q *quickstart) replaceToken(ctx context.Context, r *report) error {
	m := q.america
	old, oldSecret := m.Token, m.BoundSecret
	if err := m.ReplaceToken(ctx); err != nil {
		return err
	}
	if err := q.source.setAccess(ctx, m, m.Server()); err != nil {
		return err
	}
	q.tokens = append(q.tokens, old)
	if q.source.terms().switches {
		q.switches[q.source.clusterName(m)]++
		if err := q.expectLogged(ctx, r, m, switched); err != nil {
			return err
		}
	}
	if err := q.revoke(ctx, r, m, old, oldSecret); err != nil {
		return err
	}
	m.Network.Cut()
	if err := m.CreateConfigMap(ctx, "after-the-new-token"); err != nil {
		return err
	}
	if err := q.expectReconciled(ctx, r, m, "after-the-new-token"); err != nil {
		return err
	}
	if err := q.expectUntouched(m); err != nil {
		return err
	}
	r.Explain("The controller reconnected with the new token. “%s” was logged only once", engaged)
	r.Explain("for %s: its caches and watches continued.", q.source.clusterName(m))
	return nil
}

// revoke deletes the token's bound Secret and waits until the API server rejects
// the token.
func (q *quickstart) revoke(ctx context.Context, r *report, m *realfleet.Member, token string, bound *corev1.Secret) error {
	if err := m.Client.Delete(ctx, bound); err != nil {
		return err
	}
	r.Now("waiting for the API server to reject the old token, which takes up to 10s")
	defer r.Now("")
	var status int
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, waitLimit, true, func(ctx context.Context) (bool, error) {
		var err error
		status, err = m.Status(ctx, token)
		return status == http.StatusUnauthorized, err
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to respond with 401 to the revoked token: last status %d: %w", m.Name, status, err)
	}
	r.Explain("%s's API server responds with 401 to the old token; its connections were closed:", m.Name)
	return nil
}

// touch updates all entries in ways that do not affect a connection.
func (q *quickstart) touch(ctx context.Context, r *report) error {
	members := []*realfleet.Member{q.europe, q.america, q.asia}
	for range updates {
		for _, m := range members {
			if err := q.source.touch(ctx, m); err != nil {
				return err
			}
		}
	}
	for _, m := range members {
		if err := m.CreateConfigMap(ctx, "after-the-updates"); err != nil {
			return err
		}
		if err := q.expectReconciled(ctx, r, m, "after-the-updates"); err != nil {
			return err
		}
	}
	r.Explain("%s", q.source.terms().touched)
	return q.expectUntouched(members...)
}

// removeCluster removes a member. The removal arrives after the updates, so their
// effects are known by then.
func (q *quickstart) removeCluster(ctx context.Context, r *report) error {
	if err := q.expectUntouched(q.europe); err != nil {
		return err
	}
	if err := q.remove(ctx, q.europe); err != nil {
		return err
	}
	if err := q.expectLogged(ctx, r, q.europe, disengaged); err != nil {
		return err
	}
	for _, m := range []*realfleet.Member{q.europe, q.america, q.asia} {
		if err := m.CreateConfigMap(ctx, "after-europe-left"); err != nil {
			return err
		}
	}
	for _, m := range []*realfleet.Member{q.america, q.asia} {
		if err := q.expectReconciled(ctx, r, m, "after-europe-left"); err != nil {
			return err
		}
	}
	unexpected := q.reconciledLine(q.europe, "after-europe-left")
	if q.controller.stdout.Contains(unexpected) {
		return fmt.Errorf("unexpected line “%s …”: the cluster was removed", unexpected)
	}
	r.Explain("The controller ignored the ConfigMap created in europe after that.")
	return q.expectUntouched(q.america, q.asia)
}
