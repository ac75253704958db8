// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/informer"
)

// withInformers gives the cache of a manager the informers that the clusters of a
// fleet have.
func withInformers(opts manager.Options) manager.Options {
	newCache, logger := opts.NewCache, opts.Logger
	if newCache == nil {
		newCache = cache.New
	}
	if logger.GetSink() == nil {
		logger = log.Log
	}
	opts.NewCache = func(config *rest.Config, opts cache.Options) (cache.Cache, error) {
		set := informer.NewSet(logger.WithValues("cluster", LocalCluster))
		client := opts.HTTPClient
		if client == nil {
			var err error
			if client, err = rest.HTTPClientFor(config); err != nil {
				return nil, err
			}
		}
		own := *client // others use the client, too
		own.Transport = set.Transport(cmp.Or(client.Transport, http.DefaultTransport))
		opts.HTTPClient = &own
		if opts.NewInformer == nil {
			opts.NewInformer = set.New
		} else {
			opts.NewInformer = set.With(opts.NewInformer)
		}
		return newCache(config, opts)
	}
	return opts
}
