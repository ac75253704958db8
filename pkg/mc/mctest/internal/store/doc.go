// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the objects of one API server in memory, in the way a
// watch needs them: every write takes the next revision, and each resource
// remembers its latest writes.
//
// Objects are held as JSON and never changed once stored, so that readers,
// watchers and history share the same bytes. A watcher is a reader of a
// resource's history with a cursor of its own: writers never wait for it, and
// one that falls behind what history holds learns so from [ErrExpired].
package store
