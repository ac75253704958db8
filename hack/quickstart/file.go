// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

// fileFolder is the folder of the kubeconfig files, below that of the run, in which the
// controller runs.
const fileFolder = "clusters"

// kubeconfigFiles has a kubeconfig file for each member, in a folder.
type kubeconfigFiles struct{ dir string }

func (f *kubeconfigFiles) terms() terms {
	return terms{
		clusters: "two clusters",
		place:    "folder",
		entry:    "kubeconfig file",
		explanation: []string{
			"Each context of a kubeconfig file is a cluster. Files may also run commands for credentials,",
			"as with kubectl. These have a token.",
		},
		touched:     "The updates changed only a comment in the file.",
		permissions: "It is configured only for the folder, and needs no cluster beside those in the files:",
		programs:    []string{"./examples/file"},
		switches:    true,
	}
}

func (f *kubeconfigFiles) setUp(_ context.Context, _ *report, q *quickstart) error {
	f.dir = filepath.Join(q.dir, fileFolder)
	return os.Mkdir(f.dir, 0o700)
}

func (f *kubeconfigFiles) flags(context.Context) (flags, tokens []string, err error) {
	return []string{"--dir=" + fileFolder}, nil, nil
}

// name is the file of the member, as the controller names it.
func (f *kubeconfigFiles) name(m *realfleet.Member) string {
	return filepath.Join(fileFolder, m.Name+".kubeconfig")
}

func (f *kubeconfigFiles) path(m *realfleet.Member) string {
	return filepath.Join(filepath.Dir(f.dir), f.name(m))
}

func (f *kubeconfigFiles) clusterName(m *realfleet.Member) string { return f.name(m) + "+" + m.Name }

func (f *kubeconfigFiles) add(ctx context.Context, m *realfleet.Member) (string, error) {
	return "kubeconfig file " + f.name(m), f.setAccess(ctx, m, m.Server())
}

func (f *kubeconfigFiles) setAccess(_ context.Context, m *realfleet.Member, server string) error {
	content, err := m.TokenKubeconfig(server)
	if err != nil {
		return err
	}
	return os.WriteFile(f.path(m), content, 0o600)
}

func (f *kubeconfigFiles) touch(_ context.Context, m *realfleet.Member) error {
	content, err := m.TokenKubeconfig(m.Server())
	if err != nil {
		return err
	}
	content = fmt.Appendf(content, "# updated at %s\n", time.Now().Format(time.RFC3339Nano))
	return os.WriteFile(f.path(m), content, 0o600)
}

func (f *kubeconfigFiles) remove(_ context.Context, m *realfleet.Member) error {
	return os.Remove(f.path(m))
}

func (f *kubeconfigFiles) look() string { return "ls -l " + f.dir }
