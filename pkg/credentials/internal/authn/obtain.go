// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import "context"

// Credential returns the credential with which requests are sent now. As for a
// request, the plugin is run if there is none. It returns nil without an error if the
// transport of the connections authenticates.
func (t *Transport) Credential(ctx context.Context) (*Credential, error) {
	for {
		_, to := t.live()
		if to.conns == nil {
			if err := t.Open(); err != nil {
				return nil, err
			}
			continue
		}
		if to.auth == nil {
			return nil, nil
		}
		c, err := to.auth.credential(ctx, to.conns.closing.Done())
		if t.target() != to {
			continue
		}
		if err != nil {
			return nil, to.backend.WrapError(err)
		}
		return c, nil
	}
}
