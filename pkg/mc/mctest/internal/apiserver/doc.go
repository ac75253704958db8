// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is the Kubernetes API server behind mctest: HTTP in front,
// [k8s.io/apimachinery] for the rules of the API, and a store in memory.
//
// A request passes through these stages, each in a file of its own: it is
// parsed (request), counted (counters), fails if a fault matches (faults), is
// authenticated (auth), decoded and answered (handler, codec, negotiate). The
// operations on objects (create, update, delete, patch, apply, list, watch) are
// independent of HTTP, so that tests can set up a cluster without it.
package apiserver
