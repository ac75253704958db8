// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
)

// Publisher writes the profiles of a source into a hub.
type Publisher struct {
	options Options
	hub     inventory.Source // the profiles in the namespace, of all managers

	mu     sync.Mutex          // guards status
	status map[string][]Status // by name of the profile
}

// New returns a publisher. It does not connect before Run or Once.
func New(options Options) (*Publisher, error) {
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	options.setDefaults()
	options.Hub = rest.CopyConfig(options.Hub)
	// The annotation with the name of the cluster is compared with the source's.
	source, err := hub.New(options.Hub, hub.Options{Namespace: options.Namespace, TrustAnnotations: true})
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	return &Publisher{options: options, hub: source, status: map[string][]Status{}}, nil
}

// Run publishes until the context ends; then it returns nil. What is published stays.
// It fails only if it cannot be set up: a source or a hub that does not respond, and
// profiles that cannot be written, are retried (1 s to 1 min, with jitter) and logged
// with the logger of the context. Only one Run or Once may run at a time for a
// namespace and manager name, such as by leader election.
func (p *Publisher) Run(ctx context.Context) error {
	w, err := newWriter(p.options.Hub, p.options.Namespace)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	ctx, cancel := context.WithCancel(log.IntoContext(ctx, log.FromContext(ctx).WithValues(
		"namespace", p.options.Namespace, "clusterManager", p.options.ManagerName)))
	defer cancel()
	log.FromContext(ctx).Info("Publishing the inventory")
	r := newRun(ctx, p, w)
	var running sync.WaitGroup
	for _, s := range []struct {
		source inventory.Source
		sink   inventory.Sink
	}{{p.options.Source, sourceSink{r}}, {p.hub, hubSink{r}}} {
		running.Go(func() {
			_ = inventory.Restart(s.source).Run(ctx, s.sink) // never fails
		})
	}
	<-ctx.Done()
	running.Wait()
	r.wait()
	w.close()
	return nil
}

// Outcome is what was done for a profile.
type Outcome string

const (
	// Created means that the profile was created.
	Created Outcome = "Created"

	// Updated means that the profile was changed.
	Updated Outcome = "Updated"

	// Unchanged means that the profile is as it should be.
	Unchanged Outcome = "Unchanged"

	// Removed means that the profile was removed, as the source does not list it.
	Removed Outcome = "Removed"

	// Refused means that the profile may not be published: another manager has a
	// profile of the name, another cluster of the source has the name, or the
	// profile is invalid.
	Refused Outcome = "Refused"

	// Failed means that the hub did not accept a request. It is retried.
	Failed Outcome = "Failed"
)

// Status is the last outcome for a profile.
type Status struct {
	// Name of the profile in the hub.
	Name string

	// ClusterName in the source, or, for a profile that was removed, as published.
	ClusterName string

	// Outcome of the last attempt.
	Outcome Outcome

	// Message explains Refused and Failed. It contains no secret.
	Message string
}

// refusedError is an error that no retry changes.
type refusedError struct{ error }

func outcomeOf(err error) Outcome {
	if _, ok := errors.AsType[refusedError](err); ok {
		return Refused
	}
	return Failed
}
