// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"errors"
	"slices"
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
		{"colours hide no secret", "\x1b[36mtoken\x1b[0m=abc123", "token=[redacted]", nil},
		{"control characters hide no secret", "abc\x07123", "[redacted]", []string{"abc123"}},
		{"bytes that are no text are marked", "a\xffb", "a?b", nil},
		{"known secrets go", "token abc123", "token [redacted]", []string{"abc123"}},
		{"what looks like a secret goes", "Authorization: Bearer abc123 sent", "Authorization: Bearer [redacted] sent", nil},
		{"the program's name stays", "mc-token: token: NoCredentialProviders", "mc-token: token: NoCredentialProviders", nil},
		{"the end of much is kept", strings.Repeat("x", 5000) + "end", strings.Repeat("x", 4093) + "end", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := printable([]byte(test.text), test.secrets); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestTailHasWholeLines(t *testing.T) {
	g := NewWithT(t)
	end := &tail{}
	line := "token=" + strings.Repeat("s7", 50) + "\n"
	for range 1000 {
		_, err := end.Write([]byte(line))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(len(end.data)).To(BeNumerically("<=", 4*maxStderr))
	g.Expect(string(end.bytes())).To(HavePrefix("token="))
	g.Expect(printable(end.bytes(), nil)).NotTo(ContainSubstring("s7s"))
}

// TestCutAndSplitSecrets covers secrets that the limit of the tail cuts anywhere,
// and that are written in parts.
func TestCutAndSplitSecrets(t *testing.T) {
	const key = "-----BEGIN PRIVATE KEY-----\n" +
		"q83vEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8BI0Vnia\nvN7wEjRWeJq83vASNFZ4mrze8BI0Vnia\nq83vEjQ=\n-----END PRIVATE KEY-----"
	for _, test := range []struct{ name, before, secret, after string }{
		{"a line with a token", "got ghp_", "Zq7Rk2Lw9XvB4nT1mYc8Hd5Jp3Fs6Gt0Ua2W", " is refused\nand failed\n"},
		{"a word without a line", "got", "Zq7Rk2Lw9XvB4nT1mYc8Hd5Jp3Fs6Gt0Ua2W", " and failed "},
		{"a private key", "key:\n", key, "\nand failed\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			const limit = 4 * maxStderr
			for at := range len(test.before) + len(test.secret) + 1 {
				end := &tail{}
				text := test.before + test.secret + test.after
				fill := limit - len(text) + at - len("end")
				text += strings.Repeat("x", fill) + "end"
				for chunk := range slices.Chunk([]byte(text), 7) {
					_, _ = end.Write(chunk)
				}
				got := printable(end.bytes()[:min(1000, len(end.bytes()))], nil)
				for i := 0; i+8 <= len(test.secret); i++ {
					part := test.secret[i : i+8]
					if strings.Contains(got, part) && !strings.Contains(part, "-") {
						t.Fatalf("cut at %d: %q is in %.200q", at, part, got)
					}
				}
				if !strings.Contains(got, "and failed") {
					t.Fatalf("cut at %d: %.200q", at, got)
				}
			}
		})
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add([]byte("Authorization: Bearer abc\n"), "abc")
	f.Fuzz(func(t *testing.T, text []byte, secret string) {
		got := printable(text, secretsIn([]byte(`{"status":{"token":"`+secret+`"}}`)))
		if len(got) > maxStderr {
			t.Errorf("%d bytes", len(got))
		}
		if strings.ContainsAny(got, "\x00\x1b\r") {
			t.Errorf("control characters in %q", got)
		}
	})
}
