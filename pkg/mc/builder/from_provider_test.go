// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// lookup is a provider with the clusters of a map.
type lookup map[multicluster.ClusterName]cluster.Cluster

func (l lookup) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	if cl, ok := l[name]; ok {
		return cl, nil
	}
	return nil, multicluster.NotFoundError(name)
}

func (lookup) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

// uncomparable is a cluster of a type that is not comparable.
type uncomparable struct {
	cluster.Cluster
	_ []int
}

func TestWithClustersFromProvider(t *testing.T) {
	server := mctest.New(t, mctest.Options{Objects: []client.Object{configMap("a")}})
	newCluster := func(t *testing.T) cluster.Cluster {
		cl, err := cluster.New(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		mctest.StartManager(t, cl)
		return cl
	}
	for _, tc := range []struct {
		name  string
		names []multicluster.ClusterName // under which the cluster is engaged
		as    func(cluster.Cluster) cluster.Cluster
		part  func(engaged, other cluster.Cluster) lookup
		want  []string
	}{
		{
			name:  "the clusters of the provider",
			names: []multicluster.ClusterName{"eu", "us"},
			part:  func(engaged, _ cluster.Cluster) lookup { return lookup{"eu": engaged} },
			want:  []string{"eu/default/a"},
		},
		{
			name:  "names with a prefix",
			names: []multicluster.ClusterName{"cloud#eu", "cloud#us", "us"},
			part:  func(engaged, _ cluster.Cluster) lookup { return lookup{"eu": engaged} },
			want:  []string{"cloud#eu/default/a"},
		},
		{
			name:  "not a cluster of another provider with the same name",
			names: []multicluster.ClusterName{"eu", "cloud#eu"},
			part:  func(_, other cluster.Cluster) lookup { return lookup{"eu": other} },
		},
		{
			name:  "not a cluster that cannot be compared",
			names: []multicluster.ClusterName{"eu"},
			as:    func(cl cluster.Cluster) cluster.Cluster { return uncomparable{Cluster: cl} },
			part:  func(engaged, _ cluster.Cluster) lookup { return lookup{"eu": engaged} },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			engaged, rec := newCluster(t), &recorder[mcreconcile.Request]{}
			if tc.as != nil {
				engaged = tc.as(engaged)
			}
			whole := lookup{}
			for _, name := range tc.names {
				whole[name] = engaged
			}
			mgr := newManager(t, mctest.New(t), whole)
			g.Expect(mcbuilder.ControllerManagedBy(mgr).
				For(&corev1.ConfigMap{}, mcbuilder.WithClustersFromProvider(t.Context(), tc.part(engaged, newCluster(t)))).
				Complete(rec)).To(Succeed())
			all := witness(t, mgr)
			mctest.StartManager(t, mgr)
			for name := range whole {
				g.Expect(mgr.Engage(t.Context(), name, engaged)).To(Succeed())
			}
			g.Eventually(all.seen).WithTimeout(mctest.Timeout).Should(HaveLen(len(tc.names)))
			g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf(tc.want))
			g.Consistently(rec.seen).WithTimeout(settle).Should(ConsistOf(tc.want))
		})
	}
}
