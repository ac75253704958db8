// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package filecache keeps credentials of plugins in files, for tokens that are
// costly to obtain. A plugin is a new process each time, and would otherwise ask
// for the same token again and again.
//
//	credential, err := p.cache.Get(ctx, key, func(ctx context.Context) (*plugin.Credential, error) {
//		return p.obtain(ctx)
//	})
//
// It is off until somebody gives the flag --cache-dir. Callers that keep
// credentials themselves, such as Rollcall's managed authenticator, gain nothing
// from it, and the protocol has no way to say that a server has refused a token:
// one that is revoked goes on being handed out until it gets old.
//
// There is one file per key, which only the user can read, in a folder that only
// the user can write to. Files are replaced at once, so that a reader sees the
// old credential or the new one. Of the processes that find none, one obtains
// it, and the others wait for that. Keys do not wait for each other. What has
// expired is removed when something is stored.
package filecache
