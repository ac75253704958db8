// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Command clidocs writes the reference pages of mc-credential into the folder that is its
// argument, from the help of the commands.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/rollcall-dev/rollcall/internal/cli"
	"github.com/rollcall-dev/rollcall/internal/cli/command"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: clidocs FOLDER")
	}
	if err := write(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func write(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	for _, page := range old {
		if err := os.Remove(page); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.New(command.NewTerminal(genericiooptions.NewTestIOStreamsDiscard()))
	root.DisableAutoGenTag = true
	return doc.GenMarkdownTree(root, dir)
}
