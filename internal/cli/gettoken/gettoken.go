// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package gettoken is the command that prints the credential of a profile, also as the
// exec plugin of a kubeconfig.
package gettoken

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/filecache"
)

// Name is the name of the command, and ServerFlag that of the flag for the server.
const (
	Name       = "get-token"
	ServerFlag = "server"
)

// Output formats: auto is a summary on a terminal, and otherwise JSON, an ExecCredential.
const (
	auto    output.Format = "auto"
	summary output.Format = "summary"
)

type options struct {
	env     *command.Env
	sources sources.Flags

	output output.Flags

	server    string
	showToken bool
	noCache   bool
	refresh   bool
	cache     filecache.Cache
}

// New returns the command.
func New(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   Name + " PROFILE",
		Short: "Print the credential of a profile",
		Long: `Print the credential of a profile as an ExecCredential. The provider's plugin is run as a controller runs it.

On a terminal it prints a summary instead: whose credential it is and when it expires, and not the credential.

It is an exec plugin for kubeconfigs, which 'mc-credential kubeconfig' writes. Credentials are stored in a folder that only you can read. Processes that need the same one at the same time share one run of the plugin. With --server, a stored credential is used without a request to the hub; after --max-age the profile is read and the plugin is run again. If that fails, because the hub or the plugin does not respond, a credential that is still valid is kept.`,
		Example: `  # Whose credential is it, and when does it expire?
  mc-credential get-token east -n fleet

  # For scripts: the token alone
  mc-credential get-token east -n fleet | jq -r .status.token

  # The token was revoked: run the plugin now, and store the new credential
  mc-credential get-token east -n fleet --refresh`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			err := o.run(c.Context(), args[0])
			if err != nil && c.Context().Err() != nil {
				return errors.New("interrupted")
			}
			return err
		},
	}
	o.sources.AddFlags(c)
	o.output.AddFlags(c, auto, summary, output.JSON)
	flags := c.Flags()
	flags.StringVar(&o.server, ServerFlag, "", "The `URL` that the profile must have: its credential is not printed for another API server")
	flags.BoolVar(&o.showToken, "show-token", false, "Print the token and the private key on a terminal, too")
	flags.StringVar(&o.cache.Dir, "cache-dir", "", "The `folder` of stored credentials (default rollcall/get-token in your cache folder)")
	flags.DurationVar(&o.cache.MaxAge, "max-age", 5*time.Minute, "For how long a stored credential is used at most; at most 65% of its lifetime")
	flags.BoolVar(&o.refresh, "refresh", false, "Run the plugin now, and store the new credential")
	flags.BoolVar(&o.noCache, "no-cache", false, "Neither use nor store credentials in files")
	return c
}

func (o *options) complete() error {
	format, err := o.output.Format()
	switch {
	case err != nil:
		return err
	case format == output.JSON && o.env.OutIsTerminal() && !o.showToken:
		return command.Usagef("--output=json prints the credential: set --show-token, too, to print it on a terminal")
	case o.cache.MaxAge <= 0:
		return command.Usagef("--max-age must be positive: use --refresh to run the plugin now")
	case o.refresh && o.noCache:
		return command.Usagef("--refresh and --no-cache exclude each other")
	case o.noCache:
		o.cache = filecache.Cache{}
		return nil
	case o.refresh:
		o.cache.MaxAge = 1 // whatever is stored is too old
	default:
		o.cache.Keep = o.keep
	}
	dir := o.cache.Dir
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("folder of stored credentials: %w: set --cache-dir or --no-cache", err)
		}
		dir = filepath.Join(base, "rollcall", Name)
	}
	dir, err = filepath.Abs(dir)
	o.cache.Dir = dir
	return err
}

// result is a credential and what was found on the way to it. The latter is empty if a
// stored credential was used.
type result struct {
	credential *plugin.Credential
	profile    string
	server     string
	provider   string
}

func (o *options) run(ctx context.Context, name string) error {
	if format, _ := o.output.Format(); format == summary || format == auto && o.env.OutIsTerminal() {
		r, err := o.get(ctx, name, plugin.Request{})
		if err != nil {
			return err
		}
		return o.printSummary(r)
	}
	return o.printExecCredential(ctx, name)
}

// get returns the credential of the profile of that name.
func (o *options) get(ctx context.Context, name string, request plugin.Request) (result, error) {
	if request.Cluster != nil {
		if server := request.Cluster.Server; o.server != "" && o.server != server {
			return result{}, fmt.Errorf("the credential is for --server %s, but the kubeconfig has the server %s", o.server, server)
		}
		o.server = request.Cluster.Server
	}
	key, err := o.newKey(name)
	if err != nil {
		return result{}, err
	}
	if err := key.enter(); err != nil {
		return result{}, err
	}
	var found *target
	defer func() { found.close() }()
	if o.server == "" {
		if found, err = o.find(ctx, name); err != nil {
			return result{}, err
		}
		key.Profile, key.Server = found.profile, found.access.Server()
	}
	credential, err := o.cache.Get(ctx, key, func(ctx context.Context) (_ *plugin.Credential, err error) {
		if found == nil {
			if found, err = o.find(ctx, name); err != nil {
				return nil, err
			}
		}
		return found.credential(ctx)
	})
	if err != nil {
		return result{}, err
	}
	r := result{credential: credential, profile: key.Profile, server: key.Server}
	if found != nil {
		r.provider = found.access.Provider()
	}
	return r, nil
}

// keep reports whether a stored credential may be used although it could not be renewed.
func (o *options) keep(err error) bool {
	if errors.As(err, new(*finalError)) {
		return false
	}
	_, _ = fmt.Fprintf(o.env.ErrOut, "%s %s; using the stored credential, which is still valid\n", o.env.PaintErr(command.Yellow, "warning:"), command.OneLine(err.Error()))
	return true
}
