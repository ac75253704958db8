// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest

import (
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/apiserver"
)

// AddToken adds a bearer token of a user, who is a member of the groups and of
// system:authenticated. A SelfSubjectReview returns both. Any user may do
// everything.
func (c *Cluster) AddToken(token, user string, groups ...string) {
	c.server.AddToken(token, apiserver.User{Username: user, Groups: groups}, time.Time{})
}

// AddExpiringToken is AddToken with a time after which the token is rejected.
func (c *Cluster) AddExpiringToken(token string, expires time.Time, user string, groups ...string) {
	c.server.AddToken(token, apiserver.User{Username: user, Groups: groups}, expires)
}

// RevokeToken rejects requests with a token with 401. Open watches stay open;
// [Cluster.CloseConnections] closes them.
func (c *Cluster) RevokeToken(token string) { c.server.RevokeToken(token) }

// AdminToken returns the token of [Cluster.Config]. It may be revoked.
func (c *Cluster) AdminToken() string { return c.server.AdminToken() }

// ClientCertificate issues a certificate and its key, both in PEM, for a user. A
// bearer token in a request takes precedence.
func (c *Cluster) ClientCertificate(user string, groups ...string) (certificate, key []byte) {
	c.tb.Helper()
	certificate, key, err := c.server.ClientCertificate(user, groups...)
	if err != nil {
		c.tb.Errorf("mctest: certificate for %s in %s: %v", user, c.name, err)
	}
	return certificate, key
}
