// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// roll is an inventory in memory whose profiles lead to configurations that a
// test can change.
type roll struct {
	events chan func(inventory.Sink)

	mu      sync.Mutex // guards what follows
	configs map[string]*rest.Config
	changed []func()
}

func newRoll() *roll {
	return &roll{events: make(chan func(inventory.Sink)), configs: map[string]*rest.Config{}}
}

// Run implements inventory.Source.
func (r *roll) Run(ctx context.Context, sink inventory.Sink) error {
	sink.Synced()
	for {
		select {
		case <-ctx.Done():
			return nil
		case tell := <-r.events:
			tell(sink)
		}
	}
}

// Resolve implements credentials.Method: the server of a profile is the key of
// a configuration.
func (r *roll) Resolve(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	server := profile.Status.AccessProviders[0].Cluster.Server
	r.mu.Lock()
	defer r.mu.Unlock()
	config, ok := r.configs[server]
	if !ok {
		return nil, fmt.Errorf("no credentials for %q", server)
	}
	return credentials.FromRESTConfig(config), nil
}

// NotifyChange implements credentials.ChangeNotifier.
func (r *roll) NotifyChange(_ context.Context, changed func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = append(r.changed, changed)
}

// lead makes the server of a profile lead to a configuration, and tells of it.
func (r *roll) lead(server string, config *rest.Config) {
	r.mu.Lock()
	r.configs[server] = config
	changed := r.changed
	r.mu.Unlock()
	for _, f := range changed {
		f()
	}
}

func (r *roll) put(profiles ...*inventory.Profile) {
	for _, p := range profiles {
		r.events <- func(sink inventory.Sink) { sink.Put(p) }
	}
}

// join puts the clusters on the roll, each with its own configuration.
func (r *roll) join(clusters ...*mctest.Cluster) {
	for _, c := range clusters {
		r.lead(c.Name(), c.Config())
		r.put(profileOf(c))
	}
}

func (r *roll) leave(clusters ...*mctest.Cluster) {
	for _, c := range clusters {
		r.events <- func(sink inventory.Sink) { sink.Remove(inventory.KeyOf(profileOf(c))) }
	}
}

// profileOf returns the cluster's profile, whose server is its name.
func profileOf(c *mctest.Cluster) *inventory.Profile {
	return profileTo(c.Name(), c.Name())
}

func profileTo(name, server string) *inventory.Profile {
	p := &inventory.Profile{}
	p.Namespace, p.Name, p.UID = "fleet", name, types.UID(name)
	p.Annotations = map[string]string{inventory.AnnotationClusterName: name}
	p.Status.AccessProviders = []inventory.AccessProvider{{Name: "test"}}
	p.Status.AccessProviders[0].Cluster.Server = server
	return p
}
