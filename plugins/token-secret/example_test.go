// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
)

// The plugin runs in the process of the controller, for entries of the provider
// file with inProcess: mc-credential-token-secret. Their args set its flags.
func ExampleNew_inProcess() {
	resolver, err := credentials.New(credentials.Options{
		ProviderFile: "/etc/rollcall/providers.yaml",
		Plugins:      []func() plugin.Plugin{func() plugin.Plugin { return tokensecret.New() }},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resolver.Close()
}

// Fields set the defaults of the flags.
func ExamplePlugin() {
	p := tokensecret.New()
	p.Kubeconfig = "/etc/rollcall/hub.kubeconfig"
	p.AllowedNamespaces = []string{"clusters"}
	fmt.Println(p.Name(), "reads Secrets in", p.AllowedNamespaces)
	// Output:
	// mc-credential-token-secret reads Secrets in [clusters]
}

// A Secret whose token goes only to one server, with one certificate authority.
func Example_secret() {
	_ = corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   "clusters",
			Name:        "c1",
			Annotations: map[string]string{tokensecret.AnnotationServer: "https://c1.example.com:6443"},
		},
		StringData: map[string]string{
			corev1.ServiceAccountTokenKey:  "eyJhbGciOi…",
			corev1.ServiceAccountRootCAKey: "-----BEGIN CERTIFICATE-----…",
		},
	}
}
