// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gettoken

import (
	"context"
	"errors"
	"fmt"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// finalError is a decision, such as that the profile has gone, and not a failure. A stored
// credential must not be used then.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

// target is a profile that was found, and how to reach its cluster. Close it.
type target struct {
	profile string // its namespace and name
	access  *credentials.Access
	opened  *sources.Inventory
}

// find reads the profile.
func (o *options) find(ctx context.Context, name string) (_ *target, err error) {
	o.sources.ProfileName = path.Base(name)
	t := &target{}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.opened, err = o.sources.Open(ctx, o.env); err != nil {
		return nil, decided(err)
	}
	all, err := t.opened.Profiles(ctx)
	if err != nil {
		return nil, decided(err)
	}
	profiles, err := sources.Match(all, name)
	if err != nil {
		return nil, &finalError{err}
	}
	method, err := t.opened.Credentials()
	if err != nil {
		return nil, &finalError{err}
	}
	if t.access, err = method.Resolve(ctx, profiles[0]); err != nil {
		if ctx.Err() == nil {
			err = &finalError{err}
		}
		return nil, err
	}
	t.profile = inventory.KeyOf(profiles[0]).String()
	if server := t.access.Server(); o.server != "" && server != o.server {
		return nil, &finalError{fmt.Errorf("profile %s has the server %s, not %s: run 'mc-credential kubeconfig' again", t.profile, server, o.server)}
	}
	return t, nil
}

// credential runs the plugin.
func (t *target) credential(ctx context.Context) (*plugin.Credential, error) {
	credential, err := t.access.Credential(ctx)
	if errors.Is(err, credentials.ErrDenied) {
		err = &finalError{err}
	}
	return credential, err
}

// close releases what was opened, in order. The target may be nil.
func (t *target) close() {
	if t == nil {
		return
	}
	if t.access != nil {
		t.access.Release()
	}
	if t.opened != nil {
		t.opened.Close()
	}
}

// decided makes a finalError of errors that are an answer of the hub or wrong usage.
func decided(err error) error {
	code, _ := command.ExitCode(err)
	if code == command.ExitUsage || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return &finalError{err}
	}
	return err
}
