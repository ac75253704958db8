// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// source has the clusters that a function lists, which returns when they may have changed.
type source struct {
	list    func(context.Context) (map[string]*rest.Config, error)
	recheck func(inventory.Key)                     // of the fleet
	configs atomic.Pointer[map[string]*rest.Config] // of the last list
}

// Run implements inventory.Source. After an error the fleet calls it again, with backoff.
func (s *source) Run(ctx context.Context, sink inventory.Sink) error {
	known, synced := map[string]inventory.Key{}, sync.Once{}
	for ctx.Err() == nil {
		configs, err := s.list(ctx)
		if err != nil {
			return fmt.Errorf("cannot list clusters: %w", err) // the clusters stay
		}
		s.configs.Store(&configs)
		for name := range configs {
			profile, err := inventory.Synthesize(inventory.Synthetic{ClusterName: name, Manager: "own"})
			if err != nil {
				log.FromContext(ctx).Error(err, "Skipping invalid cluster", "cluster", name)
				continue
			}
			known[name] = inventory.KeyOf(profile)
			sink.Put(profile)
			s.recheck(known[name]) // its config may have changed
		}
		for name, key := range known {
			if configs[name] == nil {
				delete(known, name)
				sink.Remove(key)
			}
		}
		synced.Do(sink.Synced) // clusters of an earlier run that are not listed are removed
	}
	return nil
}

// Resolve implements credentials.Method.
func (s *source) Resolve(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	if config := (*s.configs.Load())[inventory.ClusterName(profile)]; config != nil {
		return credentials.FromRESTConfig(config), nil
	}
	return nil, fmt.Errorf("profile %s is not listed any more", inventory.KeyOf(profile))
}
