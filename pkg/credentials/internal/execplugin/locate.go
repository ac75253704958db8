// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Locate returns the path of the command: itself if it is a path, otherwise the
// first executable of that name in the plugin folders. If there is none, it
// returns an ErrPluginMissing and a path where the executable could be.
func (r *Runner) Locate(command string) (string, error) {
	dirs := r.options.PluginDirs
	if filepath.IsAbs(command) {
		if err := checkExecutable(command); err != nil {
			return command, &missingError{fmt.Sprintf("%s: %v", command, err)}
		}
		return command, nil
	}
	if runtime.GOOS == "windows" && filepath.Ext(command) == "" {
		command += ".exe"
	}
	var candidates, faults []string
	for _, dir := range dirs {
		path := filepath.Join(dir, command)
		err := checkExecutable(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			candidates = append(candidates, path)
			faults = append(faults, fmt.Sprintf("%s: %v", path, err))
		}
	}
	if len(faults) > 0 {
		return candidates[0], &missingError{strings.Join(faults, ", ")}
	}
	return filepath.Join(dirs[0], command), &missingError{fmt.Sprintf("%q is in none of %s", command, strings.Join(dirs, ", "))}
}

// checkExecutable returns why the file cannot be executed, without its path.
func checkExecutable(path string) error {
	info, err := os.Stat(path)
	var pathError *fs.PathError
	switch {
	case errors.As(err, &pathError):
		return pathError.Err
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("not a file")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return errors.New("not executable")
	}
	return nil
}
