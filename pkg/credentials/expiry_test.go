// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

func TestAnAccessTellsWhenItsCredentialExpires(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	expiry := time.Now().Add(time.Hour).Truncate(time.Second)
	plugin.answer("t1", expiry)
	access := resolve(t, onePlugin(t, plugin), server.profile("c1"))
	known := func() bool {
		_, ok := access.Expiry()
		return ok
	}
	g.Expect(known()).To(BeFalse(), "nobody has asked for a credential")
	client := httpClient(t, access.RESTConfig())
	g.Expect(known()).To(BeFalse())

	getAll(t, client, server.URL, 1, 200)
	got, ok := access.Expiry()
	g.Expect(ok).To(BeTrue())
	g.Expect(got).To(BeTemporally("==", expiry))
	access.Release()
	g.Expect(known()).To(BeFalse())
}

func TestAGivenAccessKnowsOfNoExpiry(t *testing.T) {
	_, ok := credentials.FromRESTConfig(&rest.Config{Host: "https://c1.example"}).Expiry()
	NewWithT(t).Expect(ok).To(BeFalse())
}
