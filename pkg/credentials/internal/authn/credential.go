// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// Credential is a bearer token, a client certificate, or both. It must not be
// changed once it is in use. Printing one shows no secret.
type Credential struct {
	// Authorization is the value of the request header, or "".
	Authorization string

	// Certificate is the client certificate with its key and its Leaf, or nil.
	Certificate *tls.Certificate

	// Expiry is zero if the credential does not expire.
	Expiry time.Time

	refreshAt time.Time
}

// schedule sets when the credential is due for renewal: after 70 to 90 % of
// its lifetime or, if it does not expire, after 90 to 110 % of the interval.
func (c *Credential) schedule(now time.Time, interval time.Duration) {
	part := 0.7 + 0.2*rand.Float64()
	life := c.Expiry.Sub(now)
	if c.Expiry.IsZero() {
		part, life = part+0.2, interval
	}
	c.refreshAt = now.Add(time.Duration(part * float64(life)))
}

// IsValid reports whether there is a credential and it has not expired.
func (c *Credential) IsValid(now time.Time) bool {
	return c != nil && (c.Expiry.IsZero() || now.Before(c.Expiry))
}

// isFresh reports whether there is a valid credential that is not due for
// renewal. The expiry is checked too: refreshAt is compared by the monotonic
// clock, which stands still while the machine sleeps.
func (c *Credential) isFresh(now time.Time) bool {
	return c.IsValid(now) && now.Before(c.refreshAt)
}

// equals reports whether both have the same secrets.
func (c *Credential) equals(other *Credential) bool {
	return c.Authorization == other.Authorization && c.hasCertificateOf(other)
}

// hasCertificateOf reports whether both have the same certificate, or none. The
// other one may be nil.
func (c *Credential) hasCertificateOf(other *Credential) bool {
	var mine, others [][]byte
	if c.Certificate != nil {
		mine = c.Certificate.Certificate
	}
	if other != nil && other.Certificate != nil {
		others = other.Certificate.Certificate
	}
	return slices.EqualFunc(mine, others, bytes.Equal)
}

// Format implements fmt.Formatter: no verb shows a secret.
func (c *Credential) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, "credential") }
