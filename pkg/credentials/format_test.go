// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"fmt"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

func TestPrintingShowsNoArgument(t *testing.T) {
	g := NewWithT(t)
	provider := providerfile.Provider{Name: "fake", ExecConfig: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "/plugins/x",
		Args: []string{"--password=s3cret"}, Env: []clientcmdapi.ExecEnvVar{{Name: "A", Value: "s3cret"}},
	}}
	path := filepath.Join(t.TempDir(), "providers.yaml")
	replaced(t, path, "providers:\n- name: other\n  execConfig: {apiVersion: client.authentication.k8s.io/v1, "+
		"command: /x, args: [s3cret], env: [{name: A, value: s3cret}]}\n")
	options := credentials.Options{ProviderFile: path, Providers: []providerfile.Provider{provider}, PluginDirs: []string{"/plugins"}}
	resolver := newResolver(t, options)
	access := resolve(t, resolver, profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"}))
	file, err := providerfile.Load(path)
	g.Expect(err).NotTo(HaveOccurred())

	for name, values := range map[string][]any{
		"resolver": {resolver, struct{ R *credentials.Resolver }{resolver}, struct{ m credentials.Method }{resolver}},
		"options":  {options, &options, []credentials.Options{options}},
		"provider": {provider, &provider, options.Providers},
		"file":     {file, *file, []providerfile.File{*file}},
		"access":   {access, access.PortableRESTConfig()},
	} {
		for _, value := range values {
			for _, verb := range []string{"%s", "%v", "%+v", "%#v", "%q", "%d", "%x"} {
				text := fmt.Sprintf(verb, value)
				g.Expect(text).NotTo(ContainSubstring("s3cret"), "%s of %s", verb, name)
				g.Expect(text).NotTo(ContainSubstring("733363726574"), "%s of %s", verb, name)
			}
		}
	}
	g.Expect(fmt.Sprint(resolver)).To(Equal(fmt.Sprintf("resolver of the providers %q, %q", "fake", "other")))
	g.Expect(fmt.Sprint(provider)).To(Equal(`provider "fake" with command /plugins/x`))
	g.Expect(fmt.Sprint(options)).To(And(ContainSubstring(path), ContainSubstring("/plugins"), ContainSubstring(`"fake"`)))
}
