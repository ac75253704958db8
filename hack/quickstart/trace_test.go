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

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"

func TestSearchTokens(t *testing.T) {
	const other = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJvdGhlciJ9.b3RoZXI"
	for _, tc := range []struct {
		name           string
		tokens         []string
		stdout, stderr string
		wantErr        string
	}{
		{"no token", []string{token}, "ConfigMap default/first", "Cluster engaged", ""},
		{"a known token in the log", []string{token}, "", token[40:], "found a token in the controller's output"},
		{"an unknown token in the log", []string{token}, "", "Bearer " + other, "found a token in the controller's output"},
		{"an unknown token in the output", nil, "Bearer " + other, "", "found a token in the controller's output"},
		{"a known token in another format", []string{"secret"}, "", "", "a token does not begin with"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			q := newQuickstart(nil, &kubeconfigFiles{}, false)
			q.controller = &process{stdout: newRecord(), stderr: newRecord()}
			q.tokens = tc.tokens
			q.members = []*realfleet.Member{{}} // without a token of its own
			fmt.Fprintln(q.controller.stdout, tc.stdout)
			fmt.Fprintln(q.controller.stderr, tc.stderr)
			err := q.searchTokens(t.Context(), &report{})
			if tc.wantErr == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wantErr)))
			}
		})
	}
}

func TestTracesOf(t *testing.T) {
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
