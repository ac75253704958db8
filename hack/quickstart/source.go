// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

// source is where the controller finds the clusters: how a member is added there, how its
// access changes, and how it is removed. Its methods do not run concurrently.
type source interface {
	terms() terms

	// setUp prepares the source, and starts the control plane that has it, if any.
	setUp(ctx context.Context, r *report, q *quickstart) error

	// flags returns the flags with which the controller finds the clusters, and its own
	// tokens, which must not be logged either.
	flags(ctx context.Context) (flags, tokens []string, err error)

	// clusterName is the member's name in the controller.
	clusterName(m *realfleet.Member) string

	// add adds the member, with its current token. It returns what it created.
	add(ctx context.Context, m *realfleet.Member) (entry string, err error)

	// setAccess writes the member's current token, and the URL of a server.
	setAccess(ctx context.Context, m *realfleet.Member, server string) error

	// touch changes what the source has about the member, but not its access.
	touch(ctx context.Context, m *realfleet.Member) error

	remove(ctx context.Context, m *realfleet.Member) error

	// look is a command that shows all members.
	look() string
}

// controllerKubeconfigName is the file with the controller's access to its management
// cluster.
const controllerKubeconfigName = "controller.kubeconfig"

// sources are the values of FROM. The first one is the default.
var sources = []struct {
	name string
	new  func() source
}{
	{"hub", func() source { return &hub{} }},
	{"kubeconfig", func() source { return &kubeconfigSecrets{} }},
	{"file", func() source { return &kubeconfigFiles{} }},
	{"cluster-api", func() source { return &clusterAPI{} }},
}

// newSource returns the source for a value of FROM.
func newSource(name string) (source, error) {
	var names []string
	for _, s := range sources {
		if s.name == name {
			return s.new(), nil
		}
		names = append(names, s.name)
	}
	last := len(names) - 1
	return nil, fmt.Errorf("FROM must be %s or %s, not %q", strings.Join(names[:last], ", "), names[last], name)
}

// terms are the words that differ between sources.
type terms struct {
	clusters    string   // that are started first
	place       string   // of the entries, without an article
	entry       string   // stands for a cluster
	explanation []string // of the entry, in lines
	touched     string   // all that touch changes
	permissions string   // of the controller, beside those on members
	programs    []string // packages, that of the controller first
	switches    bool     // a new token is a new connection
}

// management is a cluster with entries for other clusters.
type management struct {
	*realfleet.ControlPlane
	kubeconfig string // path of the controller's
}

// start starts the cluster, with the objects of a file in the source tree.
func (m *management) start(ctx context.Context, q *quickstart, file string) (err error) {
	m.kubeconfig = filepath.Join(q.dir, controllerKubeconfigName)
	if m.ControlPlane, err = q.startControlPlane(ctx, "management"); err != nil {
		return err
	}
	return m.CreateFromFile(ctx, filepath.Join(q.root, filepath.FromSlash(file)))
}

// login returns the controller's flag --kubeconfig, with a token of the account, and
// the token.
func (m *management) login(ctx context.Context, namespace, account string) (flags, tokens []string, err error) {
	controller := &corev1.ServiceAccount{}
	controller.Namespace, controller.Name = namespace, account
	token, err := m.IssueToken(ctx, controller, nil)
	if err != nil {
		return nil, nil, err
	}
	return []string{"--kubeconfig=" + m.kubeconfig}, []string{token}, m.WriteKubeconfig(m.kubeconfig, token)
}

// replaceKubeconfig replaces the kubeconfig of the member in a Secret.
func (m *management) replaceKubeconfig(ctx context.Context, secret *corev1.Secret, key string, member *realfleet.Member, server string) error {
	content, err := member.TokenKubeconfig(server)
	if err != nil {
		return err
	}
	before := secret.DeepCopy()
	secret.Data = map[string][]byte{key: content}
	return m.Client.Patch(ctx, secret, client.MergeFrom(before))
}
