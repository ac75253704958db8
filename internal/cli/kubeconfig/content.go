// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Writer returns kubeconfigs, for other commands.
type Writer struct {
	options options
	args    sources.Args
}

// NewWriter returns a Writer for profiles of the inventory that the flags select.
func NewWriter(env *command.Env, flags *sources.Flags) (*Writer, error) {
	w := &Writer{options: options{env: env, sources: *flags, all: true}}
	err := w.options.findProgram()
	if err != nil {
		return nil, err
	}
	w.args, err = flags.Args(env)
	return w, err
}

// Content returns a kubeconfig whose current context is the profile's cluster. It runs no
// plugin.
func (w *Writer) Content(ctx context.Context, profile *inventory.Profile, method credentials.Method) ([]byte, error) {
	added, err := w.options.context(ctx, profile, method, w.args)
	if err != nil {
		return nil, err
	}
	wanted := &contexts{}
	if err := wanted.add(added); err != nil {
		return nil, err
	}
	f := &file{}
	if err := f.merge(wanted, nil); err != nil {
		return nil, err
	}
	return f.encode()
}
