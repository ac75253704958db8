// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

var writes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "rollcall_publish_writes_total",
	Help: "Number of attempts to write or remove a published profile, by outcome.",
}, []string{"outcome"})

func init() { ctrlmetrics.Registry.MustRegister(writes) }

// Status returns the last outcome for each profile that Run publishes or is going to
// remove, in the order of the names. It does not block.
func (p *Publisher) Status() []Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sorted(slices.Collect(maps.Values(p.status)))
}

func (p *Publisher) setStatus(name string, status []Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if status == nil {
		delete(p.status, name)
		return
	}
	p.status[name] = status
}

func sorted(all [][]Status) []Status {
	return slices.SortedFunc(slices.Values(slices.Concat(all...)), func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ClusterName, b.ClusterName))
	})
}

// statuses returns the outcome for a name, and for the duplicates.
func statuses(name string, v *view, outcome Outcome, message string) []Status {
	cluster := ""
	switch {
	case v.source != nil:
		cluster = inventory.ClusterName(v.source)
	case v.published != nil:
		cluster = inventory.ClusterName(v.published)
	}
	all := []Status{{Name: name, ClusterName: cluster, Outcome: outcome, Message: message}}
	for _, duplicate := range v.duplicates {
		all = append(all, Status{
			Name: name, ClusterName: inventory.ClusterName(duplicate), Outcome: Refused, Message: refuseDuplicate(v.source).Error(),
		})
	}
	return all
}
