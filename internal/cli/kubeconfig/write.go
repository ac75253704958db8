// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
)

const (
	lockInterval = 50 * time.Millisecond
	lockTimeout  = 10 * time.Second

	// temporaryInfix is in the name of an incomplete file, after that of the file.
	temporaryInfix = ".mc-credential-new-"
)

// mergeInto merges the contexts into the file.
func (o *options) mergeInto(ctx context.Context, wanted *contexts) error {
	before, after := 0, 0
	removed := 0
	err := change(ctx, o.merge, func(f *file) error {
		before = len(f.marked())
		err := f.merge(wanted, func(string) { removed++ })
		after = len(f.marked())
		return err
	})
	if err != nil {
		return err
	}
	added := after - before + removed
	_, err = fmt.Fprintf(o.env.ErrOut, "%s %s: contexts: %d added, %d removed, %d present\n",
		o.env.PaintErr(command.Green, "✓"), o.merge, added, removed, len(wanted.list)-added)
	return err
}

// removeFrom removes contexts that the command has added from the file.
func (o *options) removeFrom(ctx context.Context, names []string) error {
	removed := 0
	err := change(ctx, o.merge, func(f *file) error {
		return f.remove(names, func(name string) {
			removed++
			if f.isCurrent(name) {
				_, _ = fmt.Fprintf(o.env.ErrOut, "%s the current context %q is removed: choose another one with 'kubectl config use-context'\n",
					o.env.PaintErr(command.Yellow, "warning:"), name)
			}
		})
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.env.ErrOut, "%s %s: contexts: %d removed\n", o.env.PaintErr(command.Green, "✓"), o.merge, removed)
	return err
}

func (f *file) isCurrent(name string) bool {
	if f.document.Kind == 0 {
		return false
	}
	current := find(f.document.Content[0], "current-context")
	return current != nil && current.Value == name
}

// change changes the file at once, under the lock that kubectl uses. If edit returns an
// error or changes nothing, it is not written. A symbolic link stays one.
func change(ctx context.Context, path string, edit func(f *file) error) error {
	unlock, err := lock(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = path, nil
	}
	if err != nil {
		return err
	}
	data, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := edit(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !f.changed {
		return nil
	}
	encoded, err := f.encode()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case bytes.Equal(encoded, data):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return replace(target, encoded)
}

// lock creates the file that kubectl uses as a lock, and returns what removes it.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	name := path + ".lock"
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, lockInterval, lockTimeout, true, func(context.Context) (bool, error) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case errors.Is(err, fs.ErrExist):
			return false, nil
		case err != nil:
			return false, err
		}
		return true, f.Close()
	})
	switch {
	case err != nil && ctx.Err() == nil && wait.Interrupted(err):
		return nil, fmt.Errorf("%s exists: another program is changing the kubeconfig; if none is, delete %s", name, name)
	case err != nil:
		return nil, err
	}
	return func() { _ = os.Remove(name) }, nil
}

// replace replaces the file with a complete one of the same mode. The caller has the lock.
func replace(path string, data []byte) (err error) {
	dir, base := filepath.Split(path)
	// Of processes that were killed.
	left, _ := filepath.Glob(filepath.Join(dir, "."+base+temporaryInfix+"*"))
	for _, name := range left {
		_ = os.Remove(name)
	}
	temporary, err := os.CreateTemp(dir, "."+base+temporaryInfix+"*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name())
		}
	}()
	_, err = temporary.Write(data)
	if err == nil {
		err = temporary.Sync()
	}
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if info, statErr := os.Stat(path); err == nil && statErr == nil {
		err = os.Chmod(temporary.Name(), info.Mode().Perm())
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	return err
}
