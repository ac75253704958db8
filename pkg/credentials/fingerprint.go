// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// fingerprintKey makes fingerprints useless for finding out, by guessing, a
// secret that they cover. They can be compared within one process.
var fingerprintKey = func() []byte {
	key := make([]byte, sha256.Size)
	// rand.Read never fails.
	_, _ = rand.Read(key)
	return key
}()

// digest returns a fingerprint of the values' JSON.
func digest(values ...any) string {
	mac := hmac.New(sha256.New, fingerprintKey)
	encoder := json.NewEncoder(mac)
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			// Only plain data is ever given.
			panic(err)
		}
	}
	return hex.EncodeToString(mac.Sum(nil))
}
