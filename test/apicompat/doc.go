// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package apicompat checks that programs written for
// sigs.k8s.io/multicluster-runtime compile after their import paths are
// replaced. It uses every exported name and signature that such a program uses.
// There is one file for each package, and a whole program.
//
// The compiler makes the checks. Functions and methods are assigned to variables
// of their exact type, interfaces are converted both ways from and to one
// defined here, structs are created with all fields. Generic code is checked for
// any type parameter.
package apicompat
