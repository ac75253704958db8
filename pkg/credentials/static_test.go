// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

func TestThePasswordInAGivenURLIsBasicAuthenticationAndNeverShown(t *testing.T) {
	server := newServer(t, "Basic bWU6czNjcmV0QA==") // me:s3cret@
	address := strings.TrimPrefix(server.URL, "https://")
	for _, tc := range []struct {
		name   string
		config rest.Config
	}{
		{"of a URL", rest.Config{Host: "https://me:s3cret%40@" + address}},
		{"of a host and port", rest.Config{Host: "me:s3cret%40@" + address}},
		{"beside a token, before which client-go takes it", rest.Config{Host: "https://me:s3cret%40@" + address, BearerToken: "t1"}},
		{"beside another password", rest.Config{Host: "https://me:s3cret%40@" + address, Username: "you", Password: "other"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			tc.config.CAData = server.ca()
			access := credentials.FromRESTConfig(&tc.config)
			defer access.Release()
			g.Expect(access.Server()).To(Equal(server.URL))
			g.Expect(fmt.Sprint(access)).NotTo(ContainSubstring("s3cret"))
			for _, config := range []*rest.Config{access.RESTConfig(), access.PortableRESTConfig()} {
				g.Expect(config.Host).To(Equal(server.URL))
				client, err := rest.HTTPClientFor(config)
				g.Expect(err).NotTo(HaveOccurred())
				getAll(t, client, config.Host, 1, http.StatusOK)
				client.CloseIdleConnections()
			}
			g.Expect(tc.config.Host).To(ContainSubstring("s3cret"), "what was given is left as it is")
		})
	}
}

func TestAGivenURLThatIsNoneShowsNoPassword(t *testing.T) {
	for _, host := range []string{
		"https://me:s3cret@c1:port",
		"https://me:s3cret/@c1",
		"https://me:s3cret%@c1",
		"me:s3cret%@c1",
	} {
		t.Run(host, func(t *testing.T) {
			g := NewWithT(t)
			access := credentials.FromRESTConfig(&rest.Config{Host: host})
			defer access.Release()
			for _, config := range []*rest.Config{access.RESTConfig(), access.PortableRESTConfig()} {
				_, _, err := rest.DefaultServerUrlFor(config)
				g.Expect(err).To(MatchError(And(ContainSubstring("@c1"), Not(ContainSubstring("s3cret")))))
				_, err = url.Parse(config.Host)
				g.Expect(err).To(MatchError(And(ContainSubstring("@c1"), Not(ContainSubstring("s3cret")))))
			}
			g.Expect(access.Server()).NotTo(ContainSubstring("s3cret"))
		})
	}
}

func TestADifferentPasswordInTheURLIsADifferentConnection(t *testing.T) {
	g := NewWithT(t)
	fingerprint := func(host string) string {
		return credentials.FromRESTConfig(&rest.Config{Host: host}).Fingerprint()
	}
	g.Expect(fingerprint("https://me:s3cret@c1")).To(Equal(fingerprint("https://me:s3cret@c1")))
	g.Expect(fingerprint("https://me:s3cret@c1")).NotTo(Equal(fingerprint("https://me:other@c1")))
}
