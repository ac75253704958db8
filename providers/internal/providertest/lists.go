// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Lists counts the lists of ConfigMaps, also those that are streamed by a watch.
type Lists struct{ count atomic.Int64 }

// Count returns the number of lists so far.
func (l *Lists) Count() int { return int(l.count.Load()) }

// Option is a REST option of all clusters.
func (l *Lists) Option(config *rest.Config) error {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			query := request.URL.Query()
			if strings.HasSuffix(request.URL.Path, "/configmaps") && request.Method == http.MethodGet &&
				(query.Get("watch") != "true" || query.Get("sendInitialEvents") == "true") {
				l.count.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
