// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"encoding/base64"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestDescribeToken(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	jwt := func(claims string) string {
		return "Bearer " + encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
	}
	for _, test := range []struct {
		name, authorization, expected string
	}{
		{"one audience", jwt(`{"iss":"https://hub","aud":["c1"],"sub":"alice"}`), `token of issuer "https://hub" for audience "c1"`},
		{"an audience that is a text", jwt(`{"iss":"https://hub","aud":"c1"}`), `token of issuer "https://hub" for audience "c1"`},
		{"two audiences", jwt(`{"iss":"https://hub","aud":["c1","c2"]}`), `token of issuer "https://hub" for audience "c1 c2"`},
		{"a control character", jwt(`{"iss":"a\nb","aud":"c1"}`), `token of issuer "a\nb" for audience "c1"`},
		{"a long issuer", jwt(`{"iss":"` + strings.Repeat("a", 1000) + `","aud":"c1"}`), `token of issuer "` + strings.Repeat("a", 256) + `…" for audience "c1"`},
		{"no issuer", jwt(`{"aud":"c1"}`), ""},
		{"no audience", jwt(`{"iss":"https://hub"}`), ""},
		{"an audience of a wrong type", jwt(`{"iss":"https://hub","aud":[5]}`), ""},
		{"no JWT", "Bearer secret-1", ""},
		{"three parts that are none", "Bearer a.b.c", ""},
		{"no token", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect((&Credential{Authorization: test.authorization}).Describe()).To(Equal(test.expected))
		})
	}
	NewWithT(t).Expect((*Credential)(nil).Describe()).To(BeEmpty())
}
