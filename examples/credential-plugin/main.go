// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// The example is a complete credential plugin, which reads tokens from files.
// docs/write-a-plugin.md explains it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

type files struct{ dir string }

func (f *files) Name() string    { return "mc-credential-files" }
func (f *files) Version() string { return plugin.BuildVersion() }

func (f *files) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&f.dir, "dir", "/etc/tokens", "`folder` with a token per file")
}

func (f *files) Credential(_ context.Context, request plugin.Request) (*plugin.Credential, error) {
	config, err := plugin.DecodeConfig[struct {
		File string `json:"file"`
	}](request)
	if err != nil {
		return nil, err
	}
	if config.File == "" {
		return nil, fmt.Errorf("%w: config of the cluster: file must be given", plugin.ErrBadRequest)
	}
	root, err := os.OpenRoot(f.dir) // whatever the profile says, it stays in there
	if err != nil {
		return nil, err
	}
	defer root.Close()
	token, err := root.ReadFile(config.File)
	return &plugin.Credential{Token: string(token)}, err
}

func main() { plugin.Main(&files{}) }
