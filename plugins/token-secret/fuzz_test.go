// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

func FuzzReference(f *testing.F) {
	f.Add(`{"secretRef":{"namespace":"clusters","name":"c1","key":"token"}}`)
	f.Add(`{"clusterName":"c1"}`)
	f.Add(`{"name":"c1","key":"value","namespace":"n","context":"x"}`)
	f.Add(`{"secretRef":{"name":"../x"}}`)
	f.Fuzz(func(t *testing.T, config string) {
		ref, err := decodeReference(plugin.Request{Cluster: &plugin.Cluster{Config: []byte(config)}})
		if (ref == nil) == (err == nil) {
			t.Fatal("neither or both of a reference and an error")
		}
		// The fields of an accepted reference become part of a path.
		if err == nil && (ref.Name == "" || strings.ContainsAny(ref.Namespace+ref.Name+ref.Key, "/?#%\n ")) {
			t.Errorf("accepted %+v", ref)
		}
	})
}

func FuzzContent(f *testing.F) {
	f.Add("secret", "", "")
	f.Add("a.b.c", "", "")
	f.Add("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----", "key", "")
	f.Add(`{"kind":"Config","apiVersion":"v1","clusters":[{"name":"c","cluster":{"server":"https://c1"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{"token":"t"}}]}`, "", "x")
	f.Add("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts:\n- name: x\n  context: null\n", "", "")
	f.Fuzz(func(t *testing.T, data, key, context string) {
		secret := &corev1.Secret{Data: map[string][]byte{"x.crt": []byte(data), "x.key": []byte(key)}}
		ref := &reference{Namespace: "n", Name: "c1", Key: "x.crt", Context: context}
		credential, err := read(ref, secret, &plugin.Cluster{Server: "https://c1"}, false)
		if (credential == nil) == (err == nil) {
			t.Fatal("neither or both of a credential and an error")
		}
		if err != nil {
			return
		}
		if credential.Token == "" && len(credential.ClientKey) == 0 {
			t.Error("the credential is empty")
		}
		if strings.ContainsAny(credential.Token, " \r\n\t") {
			t.Errorf("the token %q is no token", credential.Token)
		}
	})
}

func FuzzOwner(f *testing.F) {
	f.Add("e30.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6YTpiIn0.x")
	f.Fuzz(func(t *testing.T, token string) {
		if owner, err := ownerOf(token); err == nil && strings.Count(owner.String(), "/") != 1 {
			t.Errorf("accepted %q", owner)
		}
	})
}
