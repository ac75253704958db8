// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// clusterVariable has the name of the cluster for the program.
const clusterVariable = "MC_CREDENTIAL_CLUSTER"

// grace is how long a program has to end after SIGTERM.
const grace = 10 * time.Second

// runner runs a program for clusters.
type runner struct {
	*options
	program []string
	writer  *kubeconfig.Writer
	method  credentials.Method

	mu sync.Mutex // guards the streams of the terminal
}

// runAttached runs the program with the streams of this process.
func (r *runner) runAttached(ctx context.Context, profile *inventory.Profile) error {
	dir, err := os.MkdirTemp("", "mc-credential-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c, cancel, err := r.command(ctx, dir, profile)
	if err != nil {
		return err
	}
	defer cancel()
	c.Stdin, c.Stdout, c.Stderr = r.env.In, r.env.Out, r.env.ErrOut
	code, err := exitCode(c.Run())
	if code == 0 {
		return nil
	}
	return command.Exit(code, err)
}

// runAll runs the program for all clusters.
func (r *runner) runAll(ctx context.Context, profiles []*inventory.Profile, show bool) ([]*result, error) {
	dir, err := os.MkdirTemp("", "mc-credential-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	results := make([]*result, len(profiles))
	group := errgroup.Group{}
	group.SetLimit(r.parallel)
	for i, profile := range profiles {
		results[i] = &result{Cluster: inventory.ClusterName(profile), profile: profile}
		group.Go(func() error {
			if ctx.Err() != nil {
				results[i].ExitCode, results[i].Error = command.ExitFailed, "not started"
				return nil
			}
			r.runOne(ctx, filepath.Join(dir, fmt.Sprint(i)), results[i], show)
			return nil
		})
	}
	return results, group.Wait()
}

func (r *runner) runOne(ctx context.Context, dir string, into *result, show bool) {
	var stdout, stderr bytes.Buffer
	run := func() error {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		c, cancel, err := r.command(ctx, dir, into.profile)
		if err != nil {
			return err
		}
		defer cancel()
		c.Stdout, c.Stderr = &stdout, &stderr
		if show {
			prefix := command.OneLine(into.Cluster) + " | "
			out := &lines{to: r.env.Out, mu: &r.mu, prefix: r.env.Paint(command.Faint, prefix)}
			errOut := &lines{to: r.env.ErrOut, mu: &r.mu, prefix: r.env.PaintErr(command.Faint, prefix)}
			defer out.end()
			defer errOut.end()
			c.Stdout, c.Stderr = out, errOut
		}
		return c.Run()
	}
	code, err := exitCode(run())
	into.ExitCode = code
	if err != nil {
		into.Error = err.Error()
	}
	into.Stdout, into.Stderr = stdout.String(), stderr.String()
}

// command returns the program for one cluster, whose kubeconfig is written into the folder.
func (r *runner) command(ctx context.Context, dir string, profile *inventory.Profile) (*exec.Cmd, context.CancelFunc, error) {
	content, err := r.writer.Content(ctx, profile, r.method)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return nil, nil, err
	}
	cancel := context.CancelFunc(func() {})
	if r.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, r.timeout)
	}
	c := exec.CommandContext(ctx, r.program[0], r.program[1:]...)
	c.Env = append(os.Environ(), "KUBECONFIG="+path, clusterVariable+"="+inventory.ClusterName(profile))
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = grace
	return c, cancel, nil
}

// exitCode returns the exit code of a program, and the error if there is more to say.
func exitCode(err error) (int, error) {
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return command.ExitOK, nil
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode(), nil
	}
	return command.ExitFailed, err
}
