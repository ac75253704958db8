// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

func TestDefaultsOfCacheOptions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		client *http.Client
	}{
		{"no client", nil},
		{"a client without a transport", &http.Client{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var got cache.Options
			newCache := withInformers(manager.Options{NewCache: func(_ *rest.Config, opts cache.Options) (cache.Cache, error) {
				got = opts
				return nil, nil
			}}).NewCache
			_, err := newCache(&rest.Config{Host: "https://127.0.0.1:1"}, cache.Options{HTTPClient: tc.client})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.NewInformer).NotTo(BeNil())
			g.Expect(got.HTTPClient.Transport).NotTo(BeNil())
			response, err := got.HTTPClient.Get("http://127.0.0.1:1") // not a panic
			if err == nil {
				response.Body.Close()
			}
			g.Expect(err).To(HaveOccurred())
			if tc.client != nil {
				g.Expect(tc.client.Transport).To(BeNil(), "it is not changed")
			}
			_, err = newCache(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: "missing"}}, cache.Options{})
			g.Expect(err).To(MatchError(ContainSubstring("missing")))
		})
	}
}
