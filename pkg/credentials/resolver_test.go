// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

func TestResolve(t *testing.T) {
	g := NewWithT(t)
	plugin := newFakePlugin(t)
	plugin.output("t1\n", future())
	server := newServer(t, "Bearer t1")
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{plugin.provider()}})

	access := resolve(t, resolver, server.profile("c1"))
	g.Expect(plugin.runs()).To(BeEmpty(), "Resolve runs no plugin")
	client := httpClient(t, access.RESTConfig())
	for range 3 {
		status, body, err := get(client, server.URL)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status).To(Equal(200), body)
	}
	g.Expect(plugin.runs()).To(HaveLen(1))
	g.Expect(access.Provider()).To(Equal("fake"))
	g.Expect(access.Server()).To(Equal(server.URL))
}
