// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"

	kjson "sigs.k8s.io/json"
)

// Decode decodes JSON that only this project defines. Fields in another case,
// unknown fields and fields that are given twice are errors.
func Decode(data []byte, into any) error { return joined(kjson.UnmarshalStrict(data, into)) }

// DecodeKnown decodes JSON of a protocol that others extend. Unknown fields, and
// with them those in another case, are ignored. Fields that are given twice are
// errors.
func DecodeKnown(data []byte, into any) error {
	return joined(kjson.UnmarshalStrict(data, into, kjson.DisallowDuplicateFields))
}

func joined(strict []error, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}

// IsHeaderSafe reports whether the token consists of visible ASCII characters.
func IsHeaderSafe(token string) bool {
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return false
		}
	}
	return true
}

// MaxOutput is how many bytes a plugin may print.
const MaxOutput = 1 << 20
