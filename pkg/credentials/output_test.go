// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestPortableConfigAcceptsSameOutput has the same output parsed by this
// package and by client-go.
func TestPortableConfigAcceptsSameOutput(t *testing.T) {
	v1 := "client.authentication.k8s.io/v1"
	certificate, key := newCertificate(t, "Bearer t1", future())
	expiry := future().UTC().Format("2006-01-02T15:04:05Z")
	type status = map[string]string
	for _, test := range []struct {
		name      string
		output    string
		code      string
		works     bool
		differing string // why client-go's form does otherwise
	}{
		{name: "a token", output: execCredential(v1, status{"token": "t1"}), works: true},
		{name: "a token with an expiry", output: execCredential(v1, status{"token": "t1", "expirationTimestamp": expiry}), works: true},
		{name: "a client certificate", output: execCredential(v1, status{"clientCertificateData": certificate, "clientKeyData": key}), works: true},
		{name: "a token and a client certificate", output: execCredential(v1, status{"token": "t1", "clientCertificateData": certificate, "clientKeyData": key}), works: true},
		{name: "an unknown field", output: execCredential(v1, status{"token": "t1", "colour": "red"}), works: true},
		{name: "fields in another case", output: `{"kind":"ExecCredential","apiVersion":"` + v1 + `","status":{"Token":"t1"}}`},
		{name: "another field in another case", output: execCredential(v1, status{"token": "t1", "Token": "t2"}), works: true},
		{name: "nothing"},
		{name: "no JSON", output: "token: t1"},
		{name: "another kind", output: `{"kind":"Pod","apiVersion":"v1"}`},
		{name: "another API", output: execCredential("v1", status{"token": "t1"})},
		{name: "no status", output: `{"kind":"ExecCredential","apiVersion":"` + v1 + `"}`},
		{name: "neither token nor certificate", output: execCredential(v1, status{"expirationTimestamp": expiry})},
		{name: "a certificate without its key", output: execCredential(v1, status{"clientCertificateData": certificate})},
		{name: "a certificate with an invalid key", output: execCredential(v1, status{"clientCertificateData": certificate, "clientKeyData": "x"})},
		{name: "a credential, but a failure", output: execCredential(v1, status{"token": "t1"}), code: "1"},
		{
			name: "the other version", output: execCredential(v1+"beta1", status{"token": "t1"}), works: true,
			differing: "client-go refuses the output of gke-gcloud-auth-plugin",
		},
		{
			name: "a token with a line break at its end", output: execCredential(v1, status{"token": "t1\n"}), works: true,
			differing: "client-go passes it to the HTTP library, which refuses it",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.set("output", test.output)
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
