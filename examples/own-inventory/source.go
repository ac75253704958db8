// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// entry is a cluster as the service lists it.
type entry struct {
	Name   string `json:"name"`
	Region string `json:"region"`
	Server string `json:"server"`
	CA     []byte `json:"certificateAuthority"` // PEM, in base64
}

// service is an inventory.Source: an HTTP service that lists clusters as JSON.
type service struct {
	url    string
	every  time.Duration
	client *http.Client
}

// Run lists the clusters again and again. It returns the first error: the fleet
// then restarts it with backoff, and keeps the clusters.
func (s *service) Run(ctx context.Context, sink inventory.Sink) error {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	var known map[string]*inventory.Profile // by the service's name of the cluster
	for {
		entries, err := s.list(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot list clusters: %w", err)
		}
		listed := make(map[string]*inventory.Profile, len(entries))
		for _, e := range entries {
			profile, err := e.profile(known[e.Name])
			if err != nil {
				log.FromContext(ctx).Error(err, "Skipping invalid cluster", "cluster", e.Name)
				continue
			}
			listed[e.Name] = profile
			sink.Put(profile)
		}
		for name, profile := range known {
			if listed[name] == nil {
				sink.Remove(inventory.KeyOf(profile))
			}
		}
		if known == nil {
			sink.Synced()
		}
		known = listed
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// profile returns a ClusterProfile for the entry. It contains no credential, only
// the name of the access provider.
func (e entry) profile(previous *inventory.Profile) (*inventory.Profile, error) {
	return inventory.Synthesize(inventory.Synthetic{
		ClusterName: e.Name,
		Manager:     "own-inventory",
		Labels:      map[string]string{"region": e.Region},
		AccessProviders: []inventory.AccessProvider{{
			Name:    "own-inventory",
			Cluster: clientcmdv1.Cluster{Server: e.Server, CertificateAuthorityData: e.CA},
		}},
		Previous: previous,
	})
}

func (s *service) list(ctx context.Context) ([]entry, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s responds with %s", s.url, resp.Status)
	}
	var entries []entry
	if err := json.NewDecoder(resp.Body).Decode(&entries); err != nil {
		return nil, fmt.Errorf("%s: %w", s.url, err)
	}
	return entries, nil
}
