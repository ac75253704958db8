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

func (q *quickstart) steps() []step {
	return []step{
		{"Preparing kube-apiserver and etcd", "kube-apiserver and etcd are ready", q.prepare},
		{"Building a controller and a credential plugin", "A controller and a credential plugin are built", q.build},
		{"Starting a hub and two clusters", "A hub and two clusters are running: europe and america", q.startClusters},
		{"Adding both clusters to the hub", "Both clusters have a ClusterProfile in the hub", q.addMembers},
		{"Starting the controller", "The controller reconciles the ConfigMaps of both", q.startController},
		{"Adding a third cluster, asia", "The running controller also reconciles a third cluster, asia", q.addCluster},
		{"Replacing america's token", "america has a new token, the old one is revoked", q.replaceToken},
		{"Sending heartbeats", "Heartbeats caused no reconnects", q.sendHeartbeats},
		{"Deleting the first of two profiles of asia", "asia's first profile is deleted, its cluster goes on with the second", q.deleteFirstProfile},
		{"Removing europe", "europe is disengaged, the other clusters are not affected", q.removeCluster},
		{"Searching for leaked tokens", "The controller's output and the profiles contain no token", q.searchTokens},
	}
}

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
	// The CRD of the same version as the Go types.
	inventoryAPI, err := moduleDir(ctx, r, q.root, "sigs.k8s.io/cluster-inventory-api")
	if err != nil {
		return err
	}
	q.crd = filepath.Join(inventoryAPI, "config", "crd", "bases", "multicluster.x-k8s.io_clusterprofiles.yaml")
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
	arguments := append([]string{"build", "-o", q.bin + string(filepath.Separator)}, programs...)
	for _, program := range programs {
		r.Quote("%s", program)
	}
	_, err := goTool(ctx, r, q.root, arguments...)
	return err
}

// startClusters starts three control planes concurrently.
func (q *quickstart) startClusters(ctx context.Context, r *report) (err error) {
	if q.dir, err = os.MkdirTemp("", "rollcall-quickstart-"); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		cp, err := q.startControlPlane(ctx, "hub")
		if err == nil {
			q.hub, err = realfleet.NewHub(ctx, cp, q.crd)
		}
		return err
	})
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
	r.Explain("that can only read ConfigMaps.")
	return nil
}

// addMembers creates the ClusterProfiles of the first two members.
func (q *quickstart) addMembers(ctx context.Context, r *report) error {
	r.Explain("A ClusterProfile (KEP-4322) has the cluster's server and its access provider. The token is")
	r.Explain("in a Secret that only the plugin can read, and is sent to no other server.")
	for _, m := range []*realfleet.Member{q.europe, q.america} {
		if err := m.CreateConfigMap(ctx, "first"); err != nil {
			return err
		}
		if err := q.hub.AddMember(ctx, m); err != nil {
			return err
		}
		r.Quote("ClusterProfile %s: https://%s by %s", clusterName(m), m.Network.Addr(), realfleet.AccessProvider)
	}
	return nil
}

// startController starts the controller and waits until it reconciles both members.
func (q *quickstart) startController(ctx context.Context, r *report) (err error) {
	q.controller, q.hubTokens, err = startController(ctx, q.hub, q.bin, q.dir)
	if err != nil {
		return err
	}
	r.Explain("It is configured only for the hub, where it can only read ClusterProfiles:")
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

// addCluster starts a member and creates its ClusterProfile.
func (q *quickstart) addCluster(ctx context.Context, r *report) (err error) {
	r.Now("starting it")
	if q.asia, err = q.startMember(ctx, "asia"); err != nil {
		return err
	}
	if err := q.asia.CreateConfigMap(ctx, "first"); err != nil {
		return err
	}
	added := time.Now()
	if err := q.hub.AddMember(ctx, q.asia); err != nil {
		return err
	}
	if err := q.expectLogged(ctx, r, q.asia, engaged, "accessProvider"); err != nil {
		return err
	}
	if err := q.expectReconciled(ctx, r, q.asia, "first"); err != nil {
		return err
	}
	r.Explain("From its ClusterProfile to its first reconcile: %v.", time.Since(added).Round(10*time.Millisecond))
	return nil
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
	if err := q.hub.PutToken(ctx, m); err != nil {
		return err
	}
	q.revoked = append(q.revoked, old)
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
	r.Explain("for %s: its caches and watches continued.", clusterName(m))
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

// sendHeartbeats updates all profiles in ways that do not affect a connection.
func (q *quickstart) sendHeartbeats(ctx context.Context, r *report) error {
	const heartbeats = 10
	members := []*realfleet.Member{q.europe, q.america, q.asia}
	for range heartbeats {
		for _, m := range members {
			if err := q.hub.Heartbeat(ctx, m); err != nil {
				return err
			}
		}
	}
	for _, m := range members {
		if err := m.CreateConfigMap(ctx, "after-the-heartbeats"); err != nil {
			return err
		}
		if err := q.expectReconciled(ctx, r, m, "after-the-heartbeats"); err != nil {
			return err
		}
	}
	r.Explain("Each profile was updated %d times. No cluster was engaged again.", heartbeats)
	return q.expectUntouched(members...)
}

// deleteFirstProfile creates a second profile for a member, in another namespace and
// with another address and token, and deletes the first one.
func (q *quickstart) deleteFirstProfile(ctx context.Context, r *report) error {
	first := q.asia
	second, err := first.Again(ctx, realfleet.SecondNamespace)
	if err != nil {
		return err
	}
	q.mu.Lock()
	q.members = append(q.members, second)
	q.mu.Unlock()
	if err := q.hub.AddMember(ctx, second); err != nil {
		return err
	}
	r.Explain("A second profile is not a second cluster:")
	if err := q.expectLogged(ctx, r, second, duplicate, "other"); err != nil {
		return err
	}
	lists := q.controller.stderr.Matching(listsConfigMaps(first, second))
	if len(lists) == 0 {
		return fmt.Errorf("found no list of the ConfigMaps of %s in the log, not even the first", first.Name)
	}

	r.Explain("It has another address and token, and takes over when the first one is deleted:")
	if err := q.hub.DeleteProfile(ctx, first); err != nil {
		return err
	}
	for _, message := range []string{tookOver, switched} {
		if err := q.expectLogged(ctx, r, first, message, "server"); err != nil {
			return err
		}
	}
	first.Network.Close()
	if err := first.CreateConfigMap(ctx, "after-the-first-profile"); err != nil {
		return err
	}
	if err := q.expectReconciled(ctx, r, first, "after-the-first-profile"); err != nil {
		return err
	}
	if more := q.controller.stderr.Matching(listsConfigMaps(first, second))[len(lists):]; len(more) > 0 {
		return fmt.Errorf("expected no more lists of the ConfigMaps of %s, found %q", first.Name, more)
	}
	r.Explain("Its log has all requests, and no more lists of ConfigMaps: cache and watch continued.")
	q.switches[clusterName(first)] = 1
	return q.expectUntouched(first)
}

// removeCluster deletes a profile. The hub's watch delivers the deletion after the
// heartbeats, so their effects are known by then.
func (q *quickstart) removeCluster(ctx context.Context, r *report) error {
	if err := q.expectUntouched(q.europe); err != nil {
		return err
	}
	if err := q.hub.DeleteProfile(ctx, q.europe); err != nil {
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
	unexpected := reconciledLine(q.europe, "after-europe-left")
	if q.controller.stdout.Contains(unexpected) {
		return fmt.Errorf("unexpected line “%s …”: the cluster was removed", unexpected)
	}
	r.Explain("The controller ignored the ConfigMap created in europe after that.")
	return q.expectUntouched(q.america, q.asia)
}

// searchTokens searches for all tokens in the controller's output and the profiles.
func (q *quickstart) searchTokens(ctx context.Context, r *report) error {
	if err := q.controller.Running(); err != nil {
		return err
	}
	profiles, err := q.hub.Profiles(ctx)
	if err != nil {
		return err
	}
	tokens := append(append([]string(nil), q.hubTokens...), q.revoked...)
	for _, m := range q.members {
		tokens = append(tokens, m.Token)
	}
	for i, token := range tokens {
		for _, trace := range tracesOf(token) {
			switch {
			case q.controller.stdout.Contains(trace), q.controller.stderr.Contains(trace):
				return fmt.Errorf("found token %d in the controller's output", i)
			case strings.Contains(profiles, trace):
				return fmt.Errorf("found token %d in a ClusterProfile", i)
			}
		}
	}
	r.Explain("Searched for %d tokens in %d lines, logged at the highest verbosity.", len(tokens),
		q.controller.stdout.Len()+q.controller.stderr.Len())
	return nil
}
