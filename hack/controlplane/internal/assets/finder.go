// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package assets finds the binaries of a Kubernetes control plane and kubectl for
// tests, and downloads or builds those that are missing.
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

// The binaries.
const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
	kubectl   = "kubectl"
)

var (
	// binaries are those in the cache.
	binaries = []string{etcd, apiServer, kubectl}
	// required are those that an override must have.
	required = []string{etcd, apiServer}
)

const (
	// partialPrefix is the prefix of folders with incomplete binaries.
	partialPrefix = ".partial-"
	// lockPoll is how often a process retries a lock that another one holds.
	lockPoll = 200 * time.Millisecond
)

// ErrOverride means that the folder in KUBEBUILDER_ASSETS cannot be used.
var ErrOverride = errors.New("KUBEBUILDER_ASSETS is not usable")

// A Maker downloads or builds the binaries.
type Maker interface {
	// Make writes the named binaries to dir, which is empty before. It may leave other
	// files there; the caller removes dir. It returns early when ctx ends.
	Make(ctx context.Context, dir string, names []string) error
}

// A Finder finds a folder with the binaries.
type Finder struct {
	// Override is the folder to use, unless it is Cache. If it is set, nothing else is
	// tried. It need not have kubectl.
	Override string
	// Cache is the folder for the binaries of Version. Find fills it.
	Cache string
	// Version is the Kubernetes version, such as v1.37.1. Any patch release of it
	// is accepted.
	Version string
	// Makers are tried in order until one succeeds, for what the cache does not have.
	Makers []Maker
	// Report prints each step.
	Report *progress.Reporter
}

// Find returns the absolute path of a folder with the binaries. Its error wraps
// [ErrOverride] if the override is not such a folder. Processes may call it
// concurrently for the same cache.
func (f *Finder) Find(ctx context.Context) (string, error) {
	if f.Override != "" && f.Override != f.Cache {
		return f.Override, checkOverride(f.Override)
	}
	if len(f.missing()) == 0 {
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
	if len(f.missing()) == 0 { // another process has filled it
		return f.Cache, nil
	}
	return f.Cache, f.fill(ctx)
}

// lock waits for exclusive write access to the cache.
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

// fill tries each maker in order and keeps the result of the first that succeeds.
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
	names := f.missing()
	if err := maker.Make(ctx, partial, names); err != nil {
		return err
	}
	if err := f.checkRun(ctx, partial, names); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(partial, name), filepath.Join(f.Cache, name)); err != nil {
			return err
		}
	}
	return nil
}

// removePartial removes the incomplete binaries of killed processes. The caller
// holds the lock.
func (f *Finder) removePartial() error {
	partial, err := filepath.Glob(filepath.Join(f.Cache, partialPrefix+"*"))
	for _, dir := range partial {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// checkRun verifies that the binaries run on this machine, and that those of Kubernetes
// have the right minor version.
func (f *Finder) checkRun(ctx context.Context, dir string, names []string) error {
	for _, name := range names {
		args, want := []string{"--version"}, minor(f.Version)+"."
		switch name {
		case etcd:
			want = etcd
		case kubectl:
			args = []string{"version", "--client"}
		}
		command := name + " " + strings.Join(args, " ")
		out, err := exec.CommandContext(ctx, filepath.Join(dir, name), args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		if !strings.Contains(string(out), want) {
			return fmt.Errorf("%s: got %q, want %q in it", command, strings.TrimSpace(string(out)), want)
		}
	}
	return nil
}

func checkOverride(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%w: %q is not an absolute path", ErrOverride, dir)
	}
	for _, name := range required {
		if err := check(dir, name); err != nil {
			return fmt.Errorf("%w: %w; unset it to prepare the binaries", ErrOverride, err)
		}
	}
	return nil
}

// missing returns the names of the binaries that the cache does not have.
func (f *Finder) missing() []string {
	var names []string
	for _, name := range binaries {
		if check(f.Cache, name) != nil {
			names = append(names, name)
		}
	}
	return names
}

// check returns an error unless dir contains the binary.
func check(dir, name string) error {
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}

// minor returns a version without its patch number: v1.37 for v1.37.1.
func minor(version string) string {
	return version[:strings.LastIndexByte(version, '.')]
}
