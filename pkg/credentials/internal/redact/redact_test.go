// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"testing"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/redact"
)

func TestText(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
	}{
		{"plain text stays", "cannot reach the vault\n", "cannot reach the vault\n"},
		{"what is wrong stays after a secret's name", "error getting token: NoCredentialProviders: no valid providers in chain", "error getting token: NoCredentialProviders: no valid providers in chain"},
		{"so does a name in camel case", "password: AzureCLICredential: Azure CLI not found on path", "password: AzureCLICredential: Azure CLI not found on path"},
		{"so does an assigned one", "token=NoCredentialProviders, secret=missing", "token=NoCredentialProviders, secret=missing"},
		{"a short secret goes", "using bearer token: s3cr3t-v4l and secret: 1a2b3c", "using bearer token: [redacted] and secret: [redacted]"},
		{"names and codes stay", "token: AADSTS50126: see secret: cluster1 or password: c1.eu2.example.com", "token: AADSTS50126: see secret: cluster1 or password: c1.eu2.example.com"},
		{"a UUID stays", "token: 0d5d6c2e-7a44-4e1b-9a7e-0f4f3f1c8a11 is unknown", "token: 0d5d6c2e-7a44-4e1b-9a7e-0f4f3f1c8a11 is unknown"},
		{"what follows the name of a flag stays", "--token flag is required", "--token flag is required"},
		{"prose about secrets stays", `secret fleet/c1, key "token": the key is empty`, `secret fleet/c1, key "token": the key is empty`},
		{"bearer tokens go", "Authorization: Bearer abc123 sent", "Authorization: Bearer [redacted] sent"},
		{"basic authentication goes", "Authorization: Basic YTpi sent, basic checks done", "Authorization: Basic [redacted] sent, basic checks done"},
		{"passwords in URLs go", "https://me:abc123@vault/x", "https://me:[redacted]@vault/x"},
		{"so do those with an at sign", "https://me:a@bc@vault/x", "https://me:[redacted]@vault/x"},
		{"tokens in URLs go", "https://abc123def@github.com/x and ssh://git@github.com/x", "https://[redacted]@github.com/x and ssh://git@github.com/x"},
		{"keys of kubeconfigs go", "client-key-data: LS0tLS1C", "client-key-data: [redacted]"},
		{"assigned values go", "aws_secret_access_key = abc123, token='hunter2'", "aws_secret_access_key = [redacted], token='[redacted]'"},
		{"values of flags go", "--token hunter2 --password=abc123", "--token [redacted] --password=[redacted]"},
		{"values of fields go", `{"access_token": "abc123", "user": "me"}`, `{"access_token": "[redacted]", "user": "me"}`},
		{"also with an escaped quote", `{"password":"ab\"c1\"23","user":"me"}`, `{"password":"[redacted]","user":"me"}`},
		{"and in single quotes", `{'password': 'abc123', 'user': 'me'}`, `{'password': '[redacted]', 'user': 'me'}`},
		{"and in escaped JSON", `body: {\"password\":\"abc123\",\"user\":\"me\"}`, `body: {\"password\":\"[redacted]\",\"user\":\"me\"}`},
		{"JSON web tokens go", "got eyJhbGciOi.eyJzdWIi.c2ln.", "got [redacted]."},
		{"keys go", "-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----\nbye", "[redacted]\nbye"},
		{"a key without an end goes to the end", "-----BEGIN PRIVATE KEY-----\nabc\n", "[redacted]"},
		{"a key without a beginning goes", "failed: no\nabc+\nab==\n-----END PRIVATE KEY-----\nbye", "failed: no\n[redacted]\nbye"},
		{"the last line of base64 goes", "x:\nq83vEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWeJo=\nq8P=\nfailed", "x:\n[redacted]\n[redacted]\nfailed"},
		{"what repeats stays", "xxxxxxxxxxxxxxxxxxxxxxxx ************************ 000000000000000000000000", "xxxxxxxxxxxxxxxxxxxxxxxx ************************ 000000000000000000000000"},
		{"an assigned UUID goes", "secret_id=0d5d6c2e-7a44-4e1b-9a7e-0f4f3f1c8a11", "secret_id=[redacted]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := redact.Text(test.text); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}
