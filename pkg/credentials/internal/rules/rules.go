// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package rules has what the provider file, the runs of its plugins and the SDK
// for plugins depend on: names, patterns, environment variables, and how JSON is
// read.
package rules

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// ExecInfoVariable is the environment variable with the request to a plugin.
const ExecInfoVariable = "KUBERNETES_EXEC_INFO"

// The versions of ExecCredential.
const (
	APIVersionV1      = "client.authentication.k8s.io/v1"
	APIVersionV1beta1 = "client.authentication.k8s.io/v1beta1"
)

// CheckCommand returns an error if the command can be neither a path nor the
// name of a program. The command must not be empty.
func CheckCommand(command string) error {
	if command == "." || command == ".." || strings.ContainsRune(command, 0) ||
		strings.ContainsRune(command, '\\') && os.PathSeparator != '\\' {
		return fmt.Errorf("%q is not the name of a program", command)
	}
	return nil
}

// IsPath reports whether the command is a path. Otherwise it is a name, to be
// looked up in the plugin folders.
func IsPath(command string) bool {
	return strings.ContainsRune(command, '/') || strings.ContainsRune(command, os.PathSeparator)
}

// MatchesAny reports whether the text matches one of the patterns.
func MatchesAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return Matches(pattern, text) })
}

// Matches reports whether the text matches the pattern, in which "*" stands for
// any characters.
func Matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return strings.HasSuffix(text, last)
}
