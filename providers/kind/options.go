// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
)

const (
	defaultInterval = time.Second
	defaultTimeout  = 10 * time.Second

	// defaultMaxBackoff is short, as a cluster that is being created does not respond at
	// first, and an attempt to connect to this machine costs little.
	defaultMaxBackoff = 2 * time.Second
)

// Options configure a Provider. The zero value is usable.
type Options struct {
	// Prefix selects the clusters whose name starts with it. It is part of their cluster
	// names. Defaults to "": all clusters.
	Prefix string

	// Interval is how often the provider looks for changes. Defaults to 1 s.
	Interval time.Duration

	// Timeout is how long a command of the container engine may take until it is reported
	// as an error. Defaults to 10 s.
	Timeout time.Duration

	// ClusterOptions are applied before Connection.ClusterOptions.
	ClusterOptions []cluster.Option

	// RESTOptions are applied before Connection.RESTOptions. They must not change
	// fields that concern connections, which come from the kubeconfig.
	RESTOptions []func(cfg *rest.Config) error

	// Connection configures how each cluster is connected and monitored. Its MaxBackoff
	// defaults to 2 s, or to MinBackoff if that is longer.
	Connection fleet.ConnectionOptions
}

// optionsOf returns the options of a call of New.
func optionsOf(all []Options) (Options, error) {
	o := Options{}
	if len(all) > 0 {
		o = all[0]
	}
	o.Interval, o.Timeout = cmp.Or(o.Interval, defaultInterval), cmp.Or(o.Timeout, defaultTimeout)
	switch {
	case len(all) > 1:
		return o, fmt.Errorf("New was called with %d Options: at most one is allowed", len(all))
	case o.Interval < 0:
		return o, fmt.Errorf("invalid Interval %v: must not be negative", o.Interval)
	case o.Timeout < 0:
		return o, fmt.Errorf("invalid Timeout %v: must not be negative", o.Timeout)
	}
	return o, nil
}

// connection returns Connection with the options of the top level.
func (o *Options) connection() fleet.ConnectionOptions {
	connection := o.Connection
	if connection.MaxBackoff <= 0 {
		connection.MaxBackoff = max(defaultMaxBackoff, connection.MinBackoff)
	}
	connection.ClusterOptions = slices.Concat(o.ClusterOptions, connection.ClusterOptions)
	connection.RESTOptions = slices.Concat(o.RESTOptions, connection.RESTOptions)
	return connection
}
