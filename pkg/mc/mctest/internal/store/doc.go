// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the objects of one API server in memory. Every write has
// the next revision, and each resource keeps its latest writes for watches.
//
// Objects are held as JSON and never changed once stored, so that readers,
// watchers and history share the same bytes. A watcher is a reader of a
// resource's history with its own cursor: writers never wait for it, and if it
// falls behind the history, it gets [ErrExpired].
package store
