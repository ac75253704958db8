// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package errdefs defines the errors that pkg/credentials exports, for the
// packages below it. Their documentation is there.
package errdefs

import (
	"errors"
	"fmt"
)

// See the variables of the same names in pkg/credentials.
var (
	ErrNoProvider     = errors.New("no matching provider")
	ErrInvalidProfile = errors.New("invalid profile")
	ErrDenied         = errors.New("denied")
	ErrPluginMissing  = errors.New("plugin missing")
	ErrPluginFailed   = errors.New("plugin failed")
	ErrTimeout        = errors.New("plugin timed out")
	ErrInvalidOutput  = errors.New("invalid output of plugin")
	ErrExpired        = fmt.Errorf("%w: credential has expired", ErrInvalidOutput)
	ErrNotPortable    = errors.New("no portable form")
	ErrReleased       = errors.New("access released")
	ErrClosed         = errors.New("resolver closed")
)
