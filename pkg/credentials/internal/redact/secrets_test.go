// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/redact"
)

const (
	lower   = "abcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
	letters = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// generators return a secret as it is printed.
var generators = map[string]func(*rand.Rand) string{
	"akia":           func(r *rand.Rand) string { return "AKIA" + chars(r, 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") },
	"aws-secret":     func(r *rand.Rand) string { return chars(r, 40, letters+digits+"+/") },
	"session":        func(r *rand.Rand) string { return "FwoGZXIvYXdzE" + base64.StdEncoding.EncodeToString(bytes(r, 250)) },
	"session-url":    func(r *rand.Rand) string { return url.QueryEscape(base64.StdEncoding.EncodeToString(bytes(r, 250))) },
	"eks":            eksToken,
	"jwt":            jwt,
	"azure-secret":   func(r *rand.Rand) string { return chars(r, 3, letters) + "8Q~" + chars(r, 34, letters+digits+"._~-") },
	"account-key":    func(r *rand.Rand) string { return base64.StdEncoding.EncodeToString(bytes(r, 64)) },
	"sas":            func(r *rand.Rand) string { return url.QueryEscape(base64.StdEncoding.EncodeToString(bytes(r, 32))) },
	"ya29":           func(r *rand.Rand) string { return "ya29." + chars(r, 180, letters+digits+"-_") },
	"gocspx":         func(r *rand.Rand) string { return "GOCSPX-" + chars(r, 28, letters+digits+"-_") },
	"google-refresh": func(r *rand.Rand) string { return "1//0g" + chars(r, 90, letters+digits+"-_") },
	"hvs":            func(r *rand.Rand) string { return "hvs.CAESI" + chars(r, 86, letters+digits+"-_") },
	"vault-legacy":   func(r *rand.Rand) string { return "s." + chars(r, 24, letters+digits) },
	"dop":            func(r *rand.Rand) string { return "dop_v1_" + chars(r, 64, digits+"abcdef") },
	"ghp":            func(r *rand.Rand) string { return "ghp_" + chars(r, 36, letters+digits) },
	"hex32":          func(r *rand.Rand) string { return chars(r, 32, digits+"abcdef") },
	"hex40":          func(r *rand.Rand) string { return chars(r, 40, digits+"abcdef") },
	"hex64":          func(r *rand.Rand) string { return chars(r, 64, digits+"abcdef") },
	"url64":          func(r *rand.Rand) string { return chars(r, 64, letters+digits+"-_") },
	"a62":            func(r *rand.Rand) string { return chars(r, 24, letters+digits) },
	"b36":            func(r *rand.Rand) string { return chars(r, 54, lower+digits) },
	"base64":         func(r *rand.Rand) string { return base64.StdEncoding.EncodeToString(bytes(r, 400)) },
	"kubeadm":        func(r *rand.Rand) string { return chars(r, 6, lower+digits) + "." + chars(r, 16, lower+digits) },
	"user-info":      func(r *rand.Rand) string { return "robot:" + chars(r, 10, letters+digits) + "1" },
	"quoted":         func(r *rand.Rand) string { return chars(r, 4, digits) + `\"` + chars(r, 8, letters+digits) + "9" },
	"pem":            func(r *rand.Rand) string { return pem(r, "\n") },
	"pem-escaped":    func(r *rand.Rand) string { return pem(r, `\n`) },
	"kubeconfig": func(r *rand.Rand) string {
		return base64.StdEncoding.EncodeToString([]byte("apiVersion: v1\nkind: Config\nusers:\n- user:\n    token: " + chars(r, 40, letters+digits) + "\n"))
	},
}

func chars(r *rand.Rand, n int, alphabet string) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(text)
}

func bytes(r *rand.Rand, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

func jwt(r *rand.Rand) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode(fmt.Appendf(nil, `{"alg":"RS256","kid":%q}`, chars(r, 20, letters))) + "." +
		encode(fmt.Appendf(nil, `{"iss":"https://issuer.example.com","sub":%q,"exp":1893456000}`, chars(r, 12, lower))) + "." + encode(bytes(r, 256))
}

func eksToken(r *rand.Rand) string {
	return "k8s-aws-v1." + base64.RawURLEncoding.EncodeToString(
		[]byte("https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Signature="+chars(r, 64, digits+"abcdef")))
}

// pem returns a private key, with a last line that is short.
func pem(r *rand.Rand, lineBreak string) string {
	text := base64.StdEncoding.EncodeToString(bytes(r, 1190+r.IntN(24)))
	lines := []string{"-----BEGIN RSA PRIVATE KEY-----"}
	for ; len(text) > 64; text = text[64:] {
		lines = append(lines, text[:64])
	}
	return strings.Join(append(lines, text, "-----END RSA PRIVATE KEY-----"), lineBreak)
}

var placeholder = regexp.MustCompile(`\{([a-z0-9-]+)\}`)

// fill replaces the placeholders, and returns the secrets.
func fill(t testing.TB, r *rand.Rand, template string) (text string, secrets []string) {
	text = placeholder.ReplaceAllStringFunc(template, func(match string) string {
		generate := generators[strings.Trim(match, "{}")]
		if generate == nil {
			t.Fatalf("no generator %s", match)
		}
		secret := generate(r)
		secrets = append(secrets, secret)
		return secret
	})
	return text, secrets
}

// surviving returns a part of the secret that is in the text, or "". Shorter ones
// can be there by chance.
func surviving(text, secret string) string {
	const atLeast = 12
	// What each secret of its kind has is none.
	for _, known := range []string{"-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "robot:", "hvs.CAESI"} {
		secret = strings.ReplaceAll(secret, known, "\x00")
	}
	for part := range strings.SplitSeq(secret, "\x00") {
		size := min(atLeast, len(part))
		if size < 6 {
			continue
		}
		for i := 0; i+size <= len(part); i++ {
			if strings.Contains(text, part[i:i+size]) {
				return part[i : i+size]
			}
		}
	}
	return ""
}

func TestCorpus(t *testing.T) {
	for _, entry := range corpus {
		t.Run(entry.tool, func(t *testing.T) {
			for seed := range uint64(8) {
				text, secrets := fill(t, rand.New(rand.NewPCG(seed, 1)), entry.text)
				got := redact.Text(text)
				for _, secret := range secrets {
					if part := surviving(got, secret); part != "" {
						t.Fatalf("seed %d: %q of a secret is in %q", seed, part, got)
					}
				}
				for _, part := range entry.keeps {
					if !strings.Contains(got, part) {
						t.Fatalf("seed %d: %q is not in %q", seed, part, got)
					}
				}
				if again := redact.Text(got); again != got {
					t.Fatalf("seed %d: redacting twice returns\n%q, once\n%q", seed, again, got)
				}
			}
		})
	}
}

// TestCutSecrets covers texts that begin within a secret.
func TestCutSecrets(t *testing.T) {
	for name, generate := range generators {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for range 10 {
				secret := generate(r)
				cut := secret[r.IntN(len(secret)/3+1):]
				if len(cut) < 24 {
					continue // too short to be recognised
				}
				got := redact.Text(cut + " is refused\n")
				if part := surviving(got, cut); part != "" && !strings.HasPrefix(cut, part+"\n") {
					t.Fatalf("%q of %q is in %q", part, cut, got)
				}
				if !strings.HasSuffix(got, " is refused\n") {
					t.Fatalf("got %q", got)
				}
			}
		})
	}
}

// TestSentences has secrets of each kind in sentences of random words.
func TestSentences(t *testing.T) {
	words := strings.Fields("cannot reach the credential provider of cluster fleet/prod-1: token NoCredentialProviders expired at " +
		"https://login.example.com:8443/oauth2/token using password AzureCLICredential with status 403 Forbidden, see --token-file " +
		"InvalidAuthenticationTokenTenant ERR_TLS_CERT_ALTNAME_INVALID arn:aws:iam::123456789012:role/reader /etc/rollcall/providers.yaml")
	for name, generate := range generators {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			for range 10 {
				var before, after []string
				for range 8 {
					before, after = append(before, words[r.IntN(len(words))]), append(after, words[r.IntN(len(words))])
				}
				secret := generate(r)
				printed := secret
				switch name {
				case "user-info":
					printed = "https://" + secret + "@host.example.com/"
				case "quoted":
					printed = `{"password":"` + secret + `"}`
				}
				head, end := strings.Join(before, " "), strings.Join(after, " ")
				got := redact.Text(head + " " + printed + " " + end)
				if part := surviving(got, secret); part != "" {
					t.Fatalf("%q is in %q", part, got)
				}
				if !strings.HasPrefix(got, head+" ") || !strings.HasSuffix(got, " "+end) {
					t.Fatalf("got %q\nwant %q … %q", got, head, end)
				}
			}
		})
	}
}

func FuzzText(f *testing.F) {
	for _, entry := range corpus {
		f.Add(entry.text, uint64(1))
	}
	names := []string{"ghp", "jwt", "eks", "hvs", "account-key", "hex64", "aws-secret"}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 5))
		secret := generators[names[r.IntN(len(names))]](r)
		at := r.IntN(len(text) + 1)
		got := redact.Text(text[:at] + " " + secret + " " + text[at:])
		if part := surviving(got, secret); part != "" && !strings.Contains(text, part) {
			t.Errorf("%q is in %q", part, got)
		}
	})
}
