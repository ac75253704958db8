// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
)

// check returns an error if the options do not allow the context. It reads no file.
func (r *Resolver) check(c *Context) error {
	if c.cluster.InsecureSkipTLSVerify && !r.options.Trusted && !r.options.AllowInsecureSkipTLSVerify {
		return c.clusterError("insecure-skip-tls-verify", notAllowed("is not allowed: set certificate-authority-data instead"))
	}
	for _, f := range c.files() {
		if err := r.checkPath(f); err != nil && f.user {
			return c.userError(f.field, err)
		} else if err != nil {
			return c.clusterError(f.field, err)
		}
	}
	if c.user.AuthProvider != nil && !r.options.Trusted {
		return c.userError("auth-provider", notAllowed("is not allowed: use a token or a client certificate"))
	}
	return r.checkExec(c)
}

func (r *Resolver) checkPath(f file) error {
	switch {
	case f.path == "" || r.options.Trusted:
		return nil
	case !r.options.AllowPaths:
		return notAllowed("a path is not allowed: use inline data")
	case !filepath.IsAbs(f.path):
		return notAllowed("the path must be absolute")
	}
	return nil
}

func (r *Resolver) checkExec(c *Context) error {
	exec := c.user.Exec
	if exec == nil {
		return nil
	}
	allowed := r.options.Exec.AllowedCommands
	switch {
	case exec.Command == "":
		return c.userError("exec.command", invalid("must be set"))
	case r.options.Trusted:
		return nil // the commands are checked when the Access is made
	case len(allowed) == 0:
		return c.userError("exec", notAllowed("running a command is not allowed: use a token or a client certificate"))
	case !slices.ContainsFunc(allowed, func(a credentials.AllowedCommand) bool { return a.Command == exec.Command }):
		return c.userError("exec.command", notAllowed(fmt.Sprintf("%q is not among the allowed commands", exec.Command)))
	}
	for _, variable := range exec.Env {
		if rules.IsDangerousVariable(variable.Name) {
			return c.userError("exec.env", notAllowed(fmt.Sprintf("the variable %q is not allowed", variable.Name)))
		}
	}
	return nil
}
