// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission bounds how many clusters connect or list their objects at
// the same time.
//
// A cluster acquires a [Slot] of the [Limiter] before it connects, confirms it
// when it has responded, and keeps it while its sources list their objects.
// [Starts] shares the slot between these sources:
//
//	slot, err := limiter.Acquire(ctx, admission.New, reportQueued)
//	…
//	err = slot.Confirm(ctx) // after the first response
//	…
//	starts, share := admission.NewStarts(engagement, limiter, slot, timeout, probe)
//	err = aware.Engage(…) // calls starts.RequestStart for each source
//	share.Release()
//	…
//	starts.Close()
//
// The slot is free when the last [Share] is released: each source has one until
// it has synced, has failed, or is known to be kept from syncing. A slot is freed
// earlier when the cluster has held it for the timeout, and with the engagement.
//
// A cluster that does not respond loses its slot after one second, or as soon as
// more than two other clusters have responded for each slot of the limiter. In
// the time that a cluster needs to respond, about one other responds for each
// slot, however fast the network is: a cluster that hangs costs about as much as
// two that respond.
//
// No lock is held while a function of the caller runs, and no operation takes
// longer when more clusters wait.
package admission
