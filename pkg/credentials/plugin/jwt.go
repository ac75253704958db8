// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"time"
)

// JWTExpiry returns when a JSON Web Token expires: its claim "exp". It returns
// false where the token is not a JWT or has no such claim. The signature is not
// looked at, so the answer is good for knowing when to ask for a new token, and
// for nothing else.
func JWTExpiry(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Expiry *float64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Expiry == nil {
		return time.Time{}, false
	}
	// Up to the year 9999, the last that RFC 3339 can write.
	if seconds := *claims.Expiry; seconds > 0 && seconds <= 253402300799 {
		return time.Unix(int64(math.Floor(seconds)), 0), true
	}
	return time.Time{}, false
}
