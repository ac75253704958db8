// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multi

import (
	"errors"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// ProviderState is the state of one of the providers.
type ProviderState string

// The states of a provider. Values are stable; more may be added.
const (
	// Added means that the provider has not been started.
	Added ProviderState = "Added"
	// Running means that the provider runs.
	Running ProviderState = "Running"
	// Restarting means that the provider has failed and is started again after a
	// delay.
	Restarting ProviderState = "Restarting"
	// Failed means that the provider has failed and cannot be started again.
	Failed ProviderState = "Failed"
	// Ended means that the provider's Start has returned without an error. Its clusters
	// stay engaged.
	Ended ProviderState = "Ended"
)

var states = []ProviderState{Added, Running, Restarting, Failed, Ended}

// ProviderStatus is the status of one of the providers.
type ProviderStatus struct {
	// Name is the name that the provider was added under.
	Name string `json:"name"`
	// State is the state of the provider.
	State ProviderState `json:"state"`
	// LastError is why the provider is Restarting or Failed, else "".
	LastError string `json:"lastError,omitempty"`
}

// The optional methods of providers, which fleets have.
type (
	withStatus     interface{ Status() []fleet.ClusterStatus }
	withReadyCheck interface {
		ReadyCheck(share float64) healthz.Checker
	}
	withClusterNames interface {
		ClusterNames() []multicluster.ClusterName
	}
)

// ProviderStatus returns the status of each provider, in the order of their names.
func (p *Provider) ProviderStatus() []ProviderStatus {
	var all []ProviderStatus
	for _, i := range p.inners() {
		all = append(all, i.status())
	}
	return all
}

// Status returns the status of the clusters of all providers that have a method
// Status, such as fleets, with prefixed names.
func (p *Provider) Status() []fleet.ClusterStatus {
	var all []fleet.ClusterStatus
	for _, i := range p.inners() {
		all = append(all, i.clusterStatus()...)
	}
	return all
}

func (i *inner) clusterStatus() []fleet.ClusterStatus {
	provider, ok := unwrap(i.provider).(withStatus)
	if !ok {
		return nil
	}
	var all []fleet.ClusterStatus
	for _, status := range provider.Status() {
		status.Name = i.of.prefix(i.name, status.Name)
		if status.DuplicateOf != "" {
			status.DuplicateOf = i.of.prefix(i.name, status.DuplicateOf)
		}
		all = append(all, status)
	}
	return all
}

// ClusterNames returns the names of the engaged clusters of all providers that have
// such a method, with prefixes.
func (p *Provider) ClusterNames() []multicluster.ClusterName {
	var all []multicluster.ClusterName
	for _, i := range p.inners() {
		if provider, ok := unwrap(i.provider).(withClusterNames); ok {
			for _, name := range provider.ClusterNames() {
				all = append(all, p.prefix(i.name, name))
			}
		}
	}
	return all
}

// StatusHandler serves Status as the handler of a fleet does.
func (p *Provider) StatusHandler() http.Handler {
	return fleet.StatusHandler(func() ([]fleet.ClusterStatus, bool) { return p.Status(), p.synced(nil) == nil })
}

// ReadyCheck returns a check for the manager's readiness probe. It passes when all
// providers have been started and none has failed, all inventories have been listed,
// and at least that share of all clusters, from 0 to 1, is Ready. Clusters that are
// Leaving, duplicates, and clusters of providers without a Status do not count.
//
// With leader election use LeaderReadyCheck.
func (p *Provider) ReadyCheck(share float64) healthz.Checker {
	return func(req *http.Request) error {
		if err := p.synced(req); err != nil {
			return err
		}
		ready, all := 0, 0
		for _, status := range p.Status() {
			switch status.State {
			case fleet.Leaving, fleet.Duplicate:
				continue
			case fleet.Ready:
				ready++
			}
			all++
		}
		if all > 0 && float64(ready)/float64(all) < share {
			return fmt.Errorf("%d of %d clusters are ready, need %.0f %%", ready, all, share*100)
		}
		return nil
	}
}

// LeaderReadyCheck is ReadyCheck with leader election; see that of a fleet. The channel
// is the manager's Elected().
func (p *Provider) LeaderReadyCheck(share float64, elected <-chan struct{}) healthz.Checker {
	check := p.ReadyCheck(share)
	return func(req *http.Request) error {
		select {
		case <-elected:
		default:
			if !p.started() {
				return nil
			}
		}
		return check(req)
	}
}

func (p *Provider) started() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ctx != nil
}

// synced returns an error unless all providers run and all inventories are listed.
func (p *Provider) synced(req *http.Request) error {
	if !p.started() {
		return errors.New("the providers have not been started")
	}
	for _, i := range p.inners() {
		switch status := i.status(); status.State {
		case Added:
			return fmt.Errorf("provider %q has not been started", i.name)
		case Restarting, Failed:
			return fmt.Errorf("provider %q is %s: %s", i.name, status.State, status.LastError)
		}
		if provider, ok := unwrap(i.provider).(withReadyCheck); ok {
			if err := provider.ReadyCheck(0)(req); err != nil {
				return fmt.Errorf("provider %q: %w", i.name, err)
			}
		}
	}
	return nil
}
