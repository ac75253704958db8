// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package assets finds the binaries of a Kubernetes control plane for tests,
// and makes them where there are none.
package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/rollcall-dev/rollcall/hack/controlplane/internal/progress"
)

// The binaries that a folder must hold.
const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
)

const (
	// partialPrefix starts the names of folders that hold unfinished work.
	partialPrefix = ".partial-"
	// lockPoll is how often a process asks for a lock that another one holds.
	lockPoll = 200 * time.Millisecond
)

// ErrOverride says that the folder that the user insists on cannot be used.
var ErrOverride = errors.New("KUBEBUILDER_ASSETS is not usable")

// A Maker is a way to get at the binaries.
type Maker interface {
	// Make puts both binaries into dir, which is empty at first. It may leave
	// other things there, which go with dir. It stops early when ctx ends.
	Make(ctx context.Context, dir string) error
}

// A Finder finds a folder that holds both binaries.
type Finder struct {
	// Override is a folder that the user insists on. If set, nothing else counts.
	Override string
	// Cache is the folder that holds the binaries of Version, now or after Find.
	Cache string
	// Version is the Kubernetes version, such as v1.37.1, of which any patch
	// release will do.
	Version string
	// Makers are asked in turn, if the cache is empty, until one succeeds.
	Makers []Maker
	// Report hears of each step.
	Report *progress.Reporter
}

// Find returns the absolute path of a folder that holds both binaries. Its
// error wraps [ErrOverride] if the override is not such a folder.
//
// Any number of processes may call it for the same cache at the same time.
func (f *Finder) Find(ctx context.Context) (string, error) {
	if f.Override != "" {
		return f.Override, checkOverride(f.Override)
	}
	if missing(f.Cache) == nil {
		return f.Cache, nil
	}
	if err := os.MkdirAll(f.Cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if missing(f.Cache) == nil { // whoever held the lock has made them
		return f.Cache, nil
	}
	return f.Cache, f.fill(ctx)
}

// lock waits until this process alone may write to the cache.
func (f *Finder) lock(ctx context.Context) (unlock func(), err error) {
	path := f.Cache + ".lock"
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = f.Report.Step("waiting for another process that prepares the same binaries", "", func() error {
			_, err := lock.TryLockContext(ctx, lockPoll)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = lock.Close() }, nil
}

// fill asks each maker in turn and keeps the result of the first that succeeds.
func (f *Finder) fill(ctx context.Context) error {
	if err := f.removePartial(); err != nil {
		return err
	}
	var errs []error
	for _, maker := range f.Makers {
		err := f.fillFrom(ctx, maker)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (f *Finder) fillFrom(ctx context.Context, maker Maker) error {
	partial, err := os.MkdirTemp(f.Cache, partialPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	if err := maker.Make(ctx, partial); err != nil {
		return err
	}
	if err := f.checkRuns(ctx, partial); err != nil {
		return err
	}
	for _, name := range []string{etcd, apiServer} {
		if err := os.Rename(filepath.Join(partial, name), filepath.Join(f.Cache, name)); err != nil {
			return err
		}
	}
	return nil
}

// removePartial removes what processes left behind that were killed. The
// caller holds the lock, so nobody is at work on it.
func (f *Finder) removePartial() error {
	partial, err := filepath.Glob(filepath.Join(f.Cache, partialPrefix+"*"))
	for _, dir := range partial {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// checkRuns makes sure that both binaries start on this machine, and that the
// API server is of the right minor version.
func (f *Finder) checkRuns(ctx context.Context, dir string) error {
	for name, want := range map[string]string{etcd: "etcd", apiServer: minor(f.Version) + "."} {
		out, err := exec.CommandContext(ctx, filepath.Join(dir, name), "--version").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s --version: %w", name, err)
		}
		if !strings.Contains(string(out), want) {
			return fmt.Errorf("%s --version: got %q, want %q in it", name, strings.TrimSpace(string(out)), want)
		}
	}
	return nil
}

func checkOverride(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%w: %q is not an absolute path", ErrOverride, dir)
	}
	if err := missing(dir); err != nil {
		return fmt.Errorf("%w: %w; unset it to have the binaries prepared", ErrOverride, err)
	}
	return nil
}

// missing returns an error unless dir holds both binaries.
func missing(dir string) error {
	for _, name := range []string{etcd, apiServer} {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			return fmt.Errorf("%s is not an executable file", path)
		}
	}
	return nil
}

// minor cuts the patch number off a version: v1.37 of v1.37.1.
func minor(version string) string {
	return version[:strings.LastIndexByte(version, '.')]
}
