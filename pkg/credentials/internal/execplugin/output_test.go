// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

func outputWith(status string) []byte {
	return []byte(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":` + status + `}`)
}

func TestExpiryOfOutput(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const jwtOf2030 = `eyJhbGciOiJub25lIn0.eyJleHAiOjE4OTM0NTYwMDB9.c2ln`
	for _, test := range []struct {
		name, status string
		expiry       time.Time
	}{
		{"an opaque token has none", `{"token":"t"}`, time.Time{}},
		{"a JWT has its own", `{"token":"` + jwtOf2030 + `\n"}`, time.Unix(1893456000, 0)},
		{"the expiry of the plugin has precedence", `{"token":"` + jwtOf2030 + `","expirationTimestamp":"2027-01-01T00:00:00Z"}`, now.AddDate(1, 0, 0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c, err := parseOutput(outputWith(test.status), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.Expiry.Equal(test.expiry)).To(BeTrue(), c.Expiry.String())
		})
	}
}

func FuzzParseOutput(f *testing.F) {
	f.Add([]byte(``))
	f.Add(outputWith(`{"token":"marker"}`))
	f.Add(outputWith(`{"token":"marker\n","expirationTimestamp":"2030-01-01T00:00:00Z"}`))
	f.Add(outputWith(`{"clientCertificateData":"marker","clientKeyData":"marker"}`))
	f.Add(outputWith(`{"token":7,"expirationTimestamp":"marker"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		c, err := parseOutput(data, now)
		switch {
		case err != nil && c != nil, err == nil && c == nil:
			t.Fatal("neither or both of a credential and an error")
		case err != nil:
			if !errors.Is(err, errdefs.ErrInvalidOutput) {
				t.Errorf("%v is not ErrInvalidOutput", err)
			}
			if strings.Contains(err.Error(), "marker") && !strings.Contains(string(data), "kind") {
				t.Errorf("%v repeats the output", err)
			}
		case c.Authorization == "" && c.Certificate == nil:
			t.Error("an empty credential")
		case strings.ContainsAny(c.Authorization, "\r\n"):
			t.Error("a token that no header may have")
		case !c.IsValid(now):
			t.Error("an expired credential")
		}
	})
}

func TestPrintable(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
		secrets          []string
	}{
		{"plain text stays", "cannot reach the vault\n", "cannot reach the vault", nil},
		{"lines stay", "a\r\nb\tc\n", "a \nb c", nil},
		{"control characters go", "\x1b[31mred\x00\x07\x1b", "red", nil},
		{"colours hide no secret", "\x1b[36mtoken\x1b[0m=abc123", "[redacted]", nil},
		{"control characters hide no secret", "abc\x07123", "[redacted]", []string{"abc123"}},
		{"basic authentication goes", "Authorization: Basic YTpi sent, basic checks done", "[redacted] sent, basic checks done", nil},
		{"passwords in URLs go", "https://me:abc123@vault/x", "https[redacted]vault/x", nil},
		{"keys of kubeconfigs go", "client-key-data: LS0tLS1C", "[redacted]", nil},
		{"keys of clouds go", "aws_secret_access_key = abc123, SecretAccessKey: abc123", "aws_secret_[redacted], Secret[redacted]", nil},
		{"bytes that are no text are marked", "a\xffb", "a?b", nil},
		{"known secrets go", "token abc123", "token [redacted]", []string{"abc123"}},
		{"bearer tokens go", "Authorization: Bearer abc123 sent", "Authorization: [redacted] sent", nil},
		{"JSON web tokens go", "got eyJhbGciOi.eyJzdWIi.c2ln.", "got [redacted]", nil},
		{"fields named like secrets go", `{"access_token": "abc123", "user": "me"}`, `{"access_[redacted], "user": "me"}`, nil},
		{"parameters named like secrets go", "?password=abc123&x=1 token: 'abc'", "?[redacted] [redacted]", nil},
		{"prose about secrets stays", `secret fleet/c1, key "token": the key is empty`, `secret fleet/c1, key "token": the key is empty`, nil},
		{"the program's own name is no field", "mc-token: cannot reach it\nmc-token: token: abc", "mc-token: cannot reach it\nmc-token: [redacted]", nil},
		{"its name is one elsewhere", "the mc-token: abc", "the mc-[redacted]", nil},
		{"keys go", "-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----\nbye", "[redacted]\nbye", nil},
		{"a key without an end goes to the end", "-----BEGIN PRIVATE KEY-----\nabc\n", "[redacted]", nil},
		{"the end of much is kept", strings.Repeat("x", 5000) + "end", strings.Repeat("x", 4093) + "end", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := printable("mc-token", []byte(test.text), test.secrets); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestTailHasWholeLines(t *testing.T) {
	g := NewWithT(t)
	end := &tail{}
	line := "token=" + strings.Repeat("s", 100) + "\n"
	for range 1000 {
		_, err := end.Write([]byte(line))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(len(end.data)).To(BeNumerically("<=", 4*maxStderr))
	g.Expect(string(end.bytes())).To(HavePrefix("token="))
	g.Expect(printable("", end.bytes(), nil)).NotTo(ContainSubstring("sss"))
}

func FuzzPrintable(f *testing.F) {
	f.Add([]byte("Authorization: Bearer abc\n"), "abc")
	f.Fuzz(func(t *testing.T, text []byte, secret string) {
		got := printable("", text, secretsIn([]byte(`{"status":{"token":"`+secret+`"}}`)))
		if len(got) > maxStderr {
			t.Errorf("%d bytes", len(got))
		}
		if strings.ContainsAny(got, "\x00\x1b\r") {
			t.Errorf("control characters in %q", got)
		}
	})
}
