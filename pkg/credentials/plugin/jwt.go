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

// JWTExpiry returns when a JSON Web Token expires, from its claim "exp". It
// returns false if the token is not a JWT or has no such claim. The signature is
// not verified: use the result only to decide when to request a new token.
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
		Expiry float64 `json:"exp"`
	}
	// Up to the year 9999, the last that RFC 3339 can write.
	if json.Unmarshal(payload, &claims) != nil || claims.Expiry <= 0 || claims.Expiry > 253402300799 {
		return time.Time{}, false
	}
	return time.Unix(int64(math.Floor(claims.Expiry)), 0), true
}
