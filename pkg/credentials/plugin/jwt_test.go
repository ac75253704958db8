// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}

func TestJWTExpiry(t *testing.T) {
	for _, test := range []struct {
		name   string
		token  string
		expiry time.Time
	}{
		{"the claim exp in seconds", jwt(`{"exp":1893456000}`), time.Unix(1893456000, 0)},
		{"a fraction is rounded down", jwt(`{"exp":1893456000.9}`), time.Unix(1893456000, 0)},
		{"a large number in exponent form", jwt(`{"exp":1.893456e9}`), time.Unix(1893456000, 0)},
		{"no claim exp", jwt(`{"sub":"me"}`), time.Time{}},
		{"exp beyond all years", jwt(`{"exp":1e300}`), time.Time{}},
		{"exp before 1970", jwt(`{"exp":-5}`), time.Time{}},
		{"exp as a text", jwt(`{"exp":"tomorrow"}`), time.Time{}},
		{"claims that are not JSON", jwt(`hello`), time.Time{}},
		{"parts that are not base64", "a.!.c", time.Time{}},
		{"two parts", "a.b", time.Time{}},
		{"an opaque token", "opaque", time.Time{}},
		{"nothing", "", time.Time{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			expiry, ok := plugin.JWTExpiry(test.token)
			if ok == test.expiry.IsZero() || !expiry.Equal(test.expiry) {
				t.Errorf("got %s, %t", expiry, ok)
			}
		})
	}
}

func FuzzJWTExpiry(f *testing.F) {
	f.Add(jwt(`{"exp":1893456000}`))
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		if expiry, ok := plugin.JWTExpiry(token); ok {
			// It can be written down and read again.
			text := expiry.UTC().Format(time.RFC3339)
			if again, err := time.Parse(time.RFC3339, text); err != nil || !again.Equal(expiry) {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}
