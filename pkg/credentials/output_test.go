// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestPortableConfigAcceptsSameOutput has the same answers read by this package and by
// client-go. Where they differ, it says why.
func TestPortableConfigAcceptsSameOutput(t *testing.T) {
	v1 := "client.authentication.k8s.io/v1"
	certificate, key := newCertificate(t, "Bearer t1", future())
	expiry := future().UTC().Format("2006-01-02T15:04:05Z")
	type status = map[string]string
	for _, test := range []struct {
		name      string
		answer    string
		code      string
		works     bool
		differing string // why client-go's form does otherwise
	}{
		{name: "a token", answer: execCredential(v1, status{"token": "t1"}), works: true},
		{name: "a token with an expiry", answer: execCredential(v1, status{"token": "t1", "expirationTimestamp": expiry}), works: true},
		{name: "a client certificate", answer: execCredential(v1, status{"clientCertificateData": certificate, "clientKeyData": key}), works: true},
		{name: "a token and a client certificate", answer: execCredential(v1, status{"token": "t1", "clientCertificateData": certificate, "clientKeyData": key}), works: true},
		{name: "a field that nobody knows", answer: execCredential(v1, status{"token": "t1", "colour": "red"}), works: true},
		{name: "nothing"},
		{name: "no JSON", answer: "token: t1"},
		{name: "another kind", answer: `{"kind":"Pod","apiVersion":"v1"}`},
		{name: "another API", answer: execCredential("v1", status{"token": "t1"})},
		{name: "no status", answer: `{"kind":"ExecCredential","apiVersion":"` + v1 + `"}`},
		{name: "neither token nor certificate", answer: execCredential(v1, status{"expirationTimestamp": expiry})},
		{name: "a certificate without its key", answer: execCredential(v1, status{"clientCertificateData": certificate})},
		{name: "a certificate with a key that is none", answer: execCredential(v1, status{"clientCertificateData": certificate, "clientKeyData": "x"})},
		{name: "a credential, but a failure", answer: execCredential(v1, status{"token": "t1"}), code: "1"},
		{
			name: "the other version", answer: execCredential(v1+"beta1", status{"token": "t1"}), works: true,
			differing: "client-go refuses what gke-gcloud-auth-plugin answers",
		},
		{
			name: "a token with a line break at its end", answer: execCredential(v1, status{"token": "t1\n"}), works: true,
			differing: "client-go hands it to the HTTP library, which refuses it",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.set("answer", test.answer)
			plugin.set("code", test.code)
			access := resolve(t, onePlugin(t, plugin), server.profile("c1"))

			outcome := func(status int, _ string, err error) string {
				switch {
				case err != nil:
					return "no request"
				case status == 200:
					return "welcome"
				}
				return "not welcome"
			}
			want := "no request"
			if test.works {
				want = "welcome"
			}
			g.Expect(outcome(get(httpClient(t, access.RESTConfig()), server.URL))).To(Equal(want))

			portable := httpClient(t, access.PortableRESTConfig())
			defer portable.CloseIdleConnections()
			if test.differing != "" {
				g.Expect(outcome(get(portable, server.URL))).NotTo(Equal(want), "no longer so: "+test.differing)
				return
			}
			g.Expect(outcome(get(portable, server.URL))).To(Equal(want))
		})
	}
}
