// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rollcall-dev/rollcall/internal/cli"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
)

// TestMain makes the programs commands of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mc-credential":              func() { os.Exit(cli.Main()) },
		"mc-credential-token-secret": func() { plugin.Main(tokensecret.New()) },
	})
}

// TestScripts runs testdata/script/*.txtar. Scripts run at the same time and share the
// control planes: each changes only objects and profiles of its own.
//
// Variables: HUB and the kubeconfigs EAST, WEST, DOWN of administrators, PLUGINS is the
// folder of the plugins, KUBECONFIG that of the hub with the context's namespace fleet.
// "code N PROGRAM ARG..." is exec for a program that must end with exit code N.
// "request NAMESPACE NAME" lists ConfigMaps of a profile's cluster, as a controller.
func TestScripts(t *testing.T) {
	planes := startPlanes(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			plugin, err := lookPath(env, "mc-credential-token-secret")
			if err != nil {
				return err
			}
			return planes.setUp(env, filepath.Dir(plugin))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"code": code, "request": planes.request},
	})
}

// code runs a program and compares its exit code.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, not %d", got, want)
	}
}

// lookPath returns the path of a program in the PATH of the script.
func lookPath(env *testscript.Env, program string) (string, error) {
	for _, dir := range filepath.SplitList(env.Getenv("PATH")) {
		if path := filepath.Join(dir, program); isFile(path) {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
