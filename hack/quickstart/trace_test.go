// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestTracesOf(t *testing.T) {
	const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"
	secret, err := json.Marshal(&corev1.Secret{Data: map[string][]byte{"token": []byte(token)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		text string
		want bool
	}{
		{"in a header", "Authorization: Bearer " + token, true},
		{"quoted", fmt.Sprintf("%q", token), true},
		{"without its beginning", token[40:], true},
		{"in a Secret", string(secret), true},
		{"in a masked header", "Authorization: Bearer <masked>", false},
		{"the same claims of another token", token[:strings.LastIndex(token, ".")] + ".b3RoZXI", false},
		{"base64 of something else", base64.StdEncoding.EncodeToString([]byte("token")), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := false
			for _, trace := range tracesOf(token) {
				found = found || strings.Contains(tc.text, trace)
			}
			NewWithT(t).Expect(found).To(Equal(tc.want))
		})
	}
}
