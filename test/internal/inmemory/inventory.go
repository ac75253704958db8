// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package inmemory provides an inventory that tests fill.
package inmemory

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// Namespace holds all profiles of the package.
const Namespace = "fleet"

// Inventory is both the source of profiles and the credential method for them.
// The server of a profile is the key of a rest.Config, which a test can change.
type Inventory struct {
	events chan func(inventory.Sink)

	mu      sync.Mutex // guards what follows
	configs map[string]*rest.Config
	changed []func()
}

// New returns an empty inventory.
func New() *Inventory {
	return &Inventory{events: make(chan func(inventory.Sink)), configs: map[string]*rest.Config{}}
}

// Run implements inventory.Source.
func (i *Inventory) Run(ctx context.Context, sink inventory.Sink) error {
	sink.Synced()
	for {
		select {
		case <-ctx.Done():
			return nil
		case send := <-i.events:
			send(sink)
		}
	}
}

// Resolve implements credentials.Method.
func (i *Inventory) Resolve(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	server := profile.Status.AccessProviders[0].Cluster.Server
	i.mu.Lock()
	defer i.mu.Unlock()
	config, ok := i.configs[server]
	if !ok {
		return nil, fmt.Errorf("no credentials for %q", server)
	}
	return credentials.FromRESTConfig(config), nil
}

// NotifyChange implements credentials.ChangeNotifier.
func (i *Inventory) NotifyChange(_ context.Context, changed func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed = append(i.changed, changed)
}

// Connect sets the config for profiles with the server. If another one was set
// before, the notifiers are called.
func (i *Inventory) Connect(server string, config *rest.Config) {
	i.mu.Lock()
	before := i.configs[server]
	i.configs[server] = config
	changed := i.changed
	i.mu.Unlock()
	if before == nil || same(before, config) {
		return
	}
	for _, f := range changed {
		f()
	}
}

// same reports whether two configs connect to one server in the same way.
func same(a, b *rest.Config) bool {
	return a.Host == b.Host && a.BearerToken == b.BearerToken && bytes.Equal(a.CAData, b.CAData)
}

// Put adds or replaces profiles. It waits until the source runs.
func (i *Inventory) Put(profiles ...*inventory.Profile) {
	for _, p := range profiles {
		i.events <- func(sink inventory.Sink) { sink.Put(p) }
	}
}

// Add adds clusters, or updates their configs.
func (i *Inventory) Add(clusters ...*mctest.Cluster) {
	for _, c := range clusters {
		i.Connect(c.Name(), c.Config())
		i.Put(ProfileOf(c))
	}
}

// Remove removes clusters. Their configs stay.
func (i *Inventory) Remove(clusters ...*mctest.Cluster) {
	for _, c := range clusters {
		i.Delete(ProfileOf(c))
	}
}

// Delete removes a profile.
func (i *Inventory) Delete(p *inventory.Profile) {
	i.events <- func(sink inventory.Sink) { sink.Remove(inventory.KeyOf(p)) }
}

// ProfileOf returns a cluster's profile, whose server is the cluster's name.
func ProfileOf(c *mctest.Cluster) *inventory.Profile { return Profile(c.Name(), c.Name()) }

// Profile returns the profile of a cluster with a name and a server.
func Profile(name, server string) *inventory.Profile {
	p := &inventory.Profile{}
	p.Namespace, p.Name, p.UID = Namespace, name, types.UID(name)
	p.Annotations = map[string]string{inventory.AnnotationClusterName: name}
	p.Status.AccessProviders = []inventory.AccessProvider{{Name: "test"}}
	p.Status.AccessProviders[0].Cluster.Server = server
	return p
}
