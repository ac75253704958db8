// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// credential is a bearer token, a client certificate, or both. It is not
// changed once made. Printing one shows no secret.
type credential struct {
	authorization string           // the header, or ""
	cert          *tls.Certificate // or nil
	expiry        time.Time        // or zero
	refreshAt     time.Time        // from when on it is to be replaced
}

// schedule sets when the credential is to be replaced: at 80 % of its
// lifetime, or after the interval where it tells no expiry, and by chance up to
// 10 % of these sooner or later.
func (c *credential) schedule(now time.Time, interval time.Duration) {
	part := 0.7 + 0.2*rand.Float64()
	life := c.expiry.Sub(now)
	if c.expiry.IsZero() {
		part, life = part+0.2, interval
	}
	c.refreshAt = now.Add(time.Duration(part * float64(life)))
}

// isValid tells whether there is a credential and it has not expired.
func (c *credential) isValid(now time.Time) bool {
	return c != nil && (c.expiry.IsZero() || now.Before(c.expiry))
}

// isFresh tells whether there is a credential and it need not be replaced yet.
// The monotonic clock, by which refreshAt is compared, stands still while the
// machine sleeps and knows nothing of a clock that was set; the expiry does.
func (c *credential) isFresh(now time.Time) bool {
	return c.isValid(now) && now.Before(c.refreshAt)
}

// sameAs tells whether the secrets are the same.
func (c *credential) sameAs(other *credential) bool {
	return c.authorization == other.authorization && c.sameCertificate(other)
}

// sameCertificate tells whether both have the same certificate, or none. The
// other one may be nil.
func (c *credential) sameCertificate(other *credential) bool {
	var mine, others [][]byte
	if c.cert != nil {
		mine = c.cert.Certificate
	}
	if other != nil && other.cert != nil {
		others = other.cert.Certificate
	}
	return slices.EqualFunc(mine, others, bytes.Equal)
}

// Format implements fmt.Formatter: no verb shows a secret.
func (c *credential) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, "credential") }
