// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// connected counts the references with a connection of all Clients.
var connected = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "rollcall_clients_connected",
	Help: "Number of clusters that clients for named profiles are connected to.",
})

func init() { ctrlmetrics.Registry.MustRegister(connected) }
