// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package compat tests a program and a library that import
// sigs.k8s.io/multicluster-runtime and know nothing of Rollcall, but for the
// replace line in go.mod.
package compat
