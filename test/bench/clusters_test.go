// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// first is the name of the ConfigMap that each cluster has from the start.
const first = "first"

// newFleet starts clusters with one ConfigMap each, and with a history that is
// long enough for the largest burst.
func newFleet(tb testing.TB, n int) *mctest.Fleet {
	tb.Helper()
	return mctest.NewFleet(tb, n, mctest.Options{
		Objects: []client.Object{configMap(first)},
		History: 1 << 16,
	})
}

func closeFleet(f *mctest.Fleet) {
	for _, c := range f.Clusters() {
		c.Close()
	}
}

// joinAll adds all clusters to the contender.
func joinAll[M member](c contender, clusters []M) {
	for _, cl := range clusters {
		c.join(cl)
	}
}

// burst creates n objects in each cluster while watches are silent. Release
// lets all watches deliver at once.
func burst(tb testing.TB, name string, n int, clusters ...*mctest.Cluster) (release func()) {
	tb.Helper()
	lifts := make([]func(), 0, len(clusters))
	for _, c := range clusters {
		lifts = append(lifts, c.Fault(mctest.Hang.For("watch")))
		for i := range n {
			create(tb, c, fmt.Sprintf("%s-%d", name, i))
		}
	}
	return func() {
		for _, lift := range lifts {
			lift()
		}
	}
}

func create(tb testing.TB, c *mctest.Cluster, name string) {
	tb.Helper()
	if err := c.Create(configMap(name)); err != nil {
		tb.Fatal(err)
	}
}

func configMap(name string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = "default", name
	cm.Data = map[string]string{"key": "value"}
	return cm
}
