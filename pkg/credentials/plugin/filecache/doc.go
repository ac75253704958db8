// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package filecache stores a plugin's credentials in files, for tokens that are
// costly to obtain. A plugin is a new process for each run, and would otherwise
// request the same token again.
//
//	credential, err := p.cache.Get(ctx, key, func(ctx context.Context) (*plugin.Credential, error) {
//		return p.obtain(ctx)
//	})
//
// It is off by default; the flag --cache-dir turns it on. Callers that keep
// credentials in memory, such as Rollcall's managed authenticator, do not need
// it. The protocol cannot tell a plugin that a server rejected a token: a revoked
// token is returned until most of its lifetime has passed, or until MaxAge.
//
// There is one file per key, readable only by the user, in a folder that only
// the user can write to. Files are replaced atomically. If several processes
// need the same credential, one obtains it and the others wait for it or for its
// error; different keys do not wait for each other. Expired files are removed whenever one is stored.
package filecache
