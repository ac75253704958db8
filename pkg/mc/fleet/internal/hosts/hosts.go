// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package hosts removes the metrics of client-go, such as
// rest_client_requests_total, for hosts that no cluster uses any more. They have a
// series for each host that ever was.
package hosts

import (
	"errors"
	"net/url"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Use is the use of hosts by one cluster: of the first one, as its client keeps its
// URLs, and of the current one. The zero value uses none. Its methods may be called
// concurrently.
type Use struct {
	mu             sync.Mutex // guards what follows
	first, current string
	ended          bool
}

// Begin begins the use of the server's host.
func (u *Use) Begin(server string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if host := hostOf(server); u.first == "" && !u.ended {
		u.first, u.current = host, host
		inUse.add(host)
	}
}

// Move moves from the current host to that of the server. It does nothing before
// Begin.
func (u *Use) Move(server string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	host := hostOf(server)
	if u.first == "" || u.ended || host == u.current {
		return
	}
	if host != u.first {
		inUse.add(host)
	}
	if u.current != u.first {
		inUse.remove(u.current)
	}
	u.current = host
}

// End ends the use of all hosts. It may be called more than once.
func (u *Use) End() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return
	}
	u.ended = true
	if u.first != "" {
		inUse.remove(u.first)
	}
	if u.current != u.first {
		inUse.remove(u.current)
	}
}

func hostOf(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return u.Host
}

// inUse are the hosts of all fleets: the metrics are those of the process.
var inUse = &counts{hosts: map[string]*count{}}

type counts struct {
	mu    sync.Mutex // guards what follows
	hosts map[string]*count
	// foreign are the hosts that had series when the first cluster used one. To look
	// for each host would take minutes for thousands of clusters.
	foreign map[string]bool
}

type count struct {
	users int
	// foreign is set if others, such as the manager, had sent requests to the host
	// before: their series are kept.
	foreign bool
}

func (c *counts) add(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.hosts) == 0 {
		c.foreign = hostsWithSeries()
	}
	if c.hosts[host] == nil {
		c.hosts[host] = &count{foreign: c.foreign[host]}
	}
	c.hosts[host].users++
}

func (c *counts) remove(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.hosts[host]
	if of.users--; of.users > 0 {
		return
	}
	delete(c.hosts, host)
	if of.foreign {
		return
	}
	for _, m := range metrics {
		if vec := m.registered(); vec != nil {
			vec.DeletePartialMatch(prometheus.Labels{"host": m.label(host)})
		}
	}
}

// hostsWithSeries returns the hosts to which requests have been counted.
func hostsWithSeries() map[string]bool {
	hosts := map[string]bool{}
	vec := requests.registered()
	if vec == nil {
		return hosts
	}
	only := prometheus.NewRegistry()
	only.MustRegister(vec)
	families, _ := only.Gather() // what it returns beside an error is valid
	for _, family := range families {
		for _, of := range family.GetMetric() {
			for _, label := range of.GetLabel() {
				if label.GetName() == "host" {
					hosts[label.GetValue()] = true
				}
			}
		}
	}
	return hosts
}

// vector is a metric with labels.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}

// metric is one of those of client-go that controller-runtime registers.
type metric struct {
	equal    vector // has the same description; it is never used
	hostname bool   // its label has no port
}

func (m *metric) label(host string) string {
	if m.hostname {
		return (&url.URL{Host: host}).Hostname()
	}
	return host
}

// registered returns the metric that controller-runtime has registered, nil if
// there is none. It is not exported, but the registry returns it.
func (m *metric) registered() vector {
	err := ctrlmetrics.Registry.Register(m.equal)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		vec, _ := already.ExistingCollector.(vector)
		return vec
	}
	if err == nil {
		ctrlmetrics.Registry.Unregister(m.equal)
	}
	return nil
}

var (
	requests = &metric{equal: counter("rest_client_requests_total",
		"Number of HTTP requests, partitioned by status code, method, and host.", "code", "method", "host")}

	metrics = []*metric{
		requests,
		// Those that follow are registered on request.
		{equal: counter("rest_client_request_retries_total",
			"Number of request retries, partitioned by status code, verb, and host.", "code", "verb", "host")},
		{equal: histogram("rest_client_request_duration_seconds",
			"Request latency in seconds. Broken down by verb and host.", "verb", "host")},
		{equal: histogram("rest_client_rate_limiter_duration_seconds",
			"Client side rate limiter latency in seconds. Broken down by verb, and host.", "verb", "host")},
		{equal: histogram("rest_client_request_size_bytes",
			"Request size in bytes. Broken down by verb and host.", "verb", "host")},
		{equal: histogram("rest_client_response_size_bytes",
			"Response size in bytes. Broken down by verb and host.", "verb", "host")},
		{equal: histogram("rest_client_dns_resolution_duration_seconds",
			"DNS resolver latency in seconds. Broken down by host.", "host"), hostname: true},
	}
)

func counter(name, help string, labels ...string) vector {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, labels ...string) vector {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help}, labels)
}
