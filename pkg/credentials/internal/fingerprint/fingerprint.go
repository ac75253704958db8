// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package fingerprint compares values by digests that reveal nothing of them.
package fingerprint

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// key prevents that a secret which a digest covers is found by guessing.
var key = func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return key
}()

// Of returns a digest of the values' JSON, for comparisons within this process.
// The values must be plain data.
func Of(values ...any) string {
	mac := hmac.New(sha256.New, key)
	encoder := json.NewEncoder(mac)
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			panic(err)
		}
	}
	return hex.EncodeToString(mac.Sum(nil))
}
