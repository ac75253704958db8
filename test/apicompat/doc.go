// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package apicompat holds programs to what they may rely on: every exported
// name and signature that a program written for sigs.k8s.io/multicluster-runtime
// uses is here, so that such a program compiles once its import paths are
// replaced. There is one file for each package, and a whole program.
//
// The checks are made by the compiler. Functions and methods are assigned to
// variables of their exact type, interfaces are converted both ways from and to
// one written out here, structs are made with all fields. Generic code is
// checked for any type parameter.
package apicompat
