// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp

import (
	"strings"
	"testing"
	"unicode"
)

func FuzzReason(f *testing.F) {
	f.Add([]byte(`{"error":"invalid_grant","error_description":"No."}`))
	f.Add([]byte(`{"error":{"status":"DENIED","message":"a\nb"}}`))
	f.Add([]byte(`{"error":[` + strings.Repeat("1,", 100) + `1]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		reason := reasonIn(body)
		if len(reason) > 410 {
			t.Errorf("%d bytes", len(reason))
		}
		if strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("control characters in %q", reason)
		}
	})
}

const chain = "middle@p1.iam.gserviceaccount.com,viewer@p1.iam.gserviceaccount.com"

func FuzzParseImpersonation(f *testing.F) {
	f.Add(chain)
	f.Add("123456")
	f.Add(",")
	f.Fuzz(func(t *testing.T, text string) {
		if i, err := parseImpersonation(text); err == nil && i.String() != text {
			t.Errorf("%q became %q", text, i)
		}
	})
}

func TestParseImpersonation(t *testing.T) {
	i, err := parseImpersonation(chain)
	if err != nil || i.Account != "viewer@p1.iam.gserviceaccount.com" || len(i.Delegates) != 1 || i.String() != chain {
		t.Errorf("got %+v, %v", i, err)
	}
}
