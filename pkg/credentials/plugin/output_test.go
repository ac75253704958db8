// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

func newCertificate(t *testing.T, notAfter time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func jwtUntil(expiry int64) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(fmt.Appendf(nil, `{"exp":%d}`, expiry)) + "." + encode([]byte("s"))
}

// TestWhatCallersRefuseIsNotPrinted also covers credentials at the limits.
func TestWhatCallersRefuseIsNotPrinted(t *testing.T) {
	later, past := time.Now().Add(time.Hour), time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	certificate, key := newCertificate(t, later)
	_, otherKey := newCertificate(t, later)
	expired, expiredKey := newCertificate(t, past)
	for _, test := range []struct {
		name       string
		credential plugin.Credential
		text       string // of the error
	}{
		{"a token", plugin.Credential{Token: "s3cret"}, ""},
		{"an expiry in the last year", plugin.Credential{Token: "s3cret", Expiry: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}, ""},
		{"a certificate", plugin.Credential{ClientCertificate: certificate, ClientKey: key}, ""},
		{"a JWT that has expired, with an expiry of its own", plugin.Credential{Token: jwtUntil(past.Unix()), Expiry: later}, ""},
		{"a line break", plugin.Credential{Token: "s3cret\nX-Evil: 1"}, "characters that are not allowed in a header"},
		{"a space", plugin.Credential{Token: "s3cret s3cret"}, "characters that are not allowed in a header"},
		{"a control character", plugin.Credential{Token: "s3cret\x7f"}, "characters that are not allowed in a header"},
		{"a letter beyond ASCII", plugin.Credential{Token: "s3crét"}, "characters that are not allowed in a header"},
		{"an expiry in the past", plugin.Credential{Token: "s3cret", Expiry: past}, "the credential expired at 2001-02-03T04:05:06Z"},
		{"an expiry in this second", plugin.Credential{Token: "s3cret", Expiry: time.Now().Truncate(time.Second)}, "the credential expired at "},
		{"a JWT that has expired", plugin.Credential{Token: jwtUntil(past.Unix())}, "the credential expired at 2001-02-03T04:05:06Z"},
		{"an expiry that no timestamp can have", plugin.Credential{Token: "s3cret", Expiry: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "in the year 10000 cannot be printed"},
		{"a certificate that has expired", plugin.Credential{ClientCertificate: expired, ClientKey: expiredKey}, "the credential expired at 2001-02-03T04:05:06Z"},
		{"the key of another certificate", plugin.Credential{ClientCertificate: certificate, ClientKey: otherKey}, "do not match"},
		{"no certificate", plugin.Credential{Token: "s3cret", ClientCertificate: []byte("s3cret"), ClientKey: []byte("s3cret")}, "not in PEM form"},
		{"more than callers read", plugin.Credential{Token: strings.Repeat("s3cret", 1<<18)}, "takes more than 1048576 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			code, stdout, stderr := run(t.Context(), returning(&test.credential, nil), nil, info(v1, `{"interactive":false}`))
			if test.text == "" {
				g.Expect(stderr).To(BeEmpty())
				g.Expect(code).To(Equal(plugin.ExitOK))
				return
			}
			g.Expect(code).To(Equal(plugin.ExitFailed))
			g.Expect(stdout).To(BeEmpty())
			g.Expect(stderr).To(And(ContainSubstring(test.text), Not(ContainSubstring("s3cr"))))
		})
	}
}

func TestRequestIsMatchedByExactCase(t *testing.T) {
	for _, test := range []struct{ name, env, text string }{
		{"an unknown field", info(v1, `{"cluster":{"server":"https://c1","colour":"red"}}`), ""},
		{"a field in another case is unknown", info(v1, `{"cluster":{"server":"https://c1","Server":"https://evil"}}`), ""},
		{"a duplicate field", info(v1, `{"cluster":{"server":"https://c1","server":"https://evil"}}`), `duplicate field "spec.cluster.server"`},
		{"the kind in another case", `KUBERNETES_EXEC_INFO={"Kind":"ExecCredential","apiVersion":"` + v1 + `"}`, `kind is ""`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			p := returning(&plugin.Credential{Token: "t1"}, nil)
			code, _, stderr := run(t.Context(), p, nil, test.env)
			if test.text == "" {
				g.Expect(stderr).To(BeEmpty())
				return
			}
			g.Expect(code).To(Equal(plugin.ExitBadRequest))
			g.Expect(stderr).To(ContainSubstring(test.text))
		})
	}
}
