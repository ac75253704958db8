// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

// Options say which clusters are provided and how they are connected. Those of
// the hub are told by hub.Options in full, those of clusters by fleet.Options.
type Options struct {
	// Credentials opens the clusters. Required unless there is a
	// KubeconfigStrategyOption. The provider does not close it.
	Credentials credentials.Method

	// KubeconfigStrategyOption opens the clusters in the place of Credentials.
	KubeconfigStrategyOption kubeconfigstrategy.Option

	// Hub leads to the cluster with the ClusterProfiles. Defaults to the
	// manager's local cluster.
	Hub *rest.Config

	// Namespace is one namespace of the hub that is read, besides Namespaces.
	Namespace string

	// Namespaces of the hub that are read. Defaults, together with Namespace, to
	// all.
	Namespaces []string

	// LabelSelector selects the profiles, in the hub's API server. Defaults to
	// all.
	LabelSelector labels.Selector

	// FieldSelector selects the profiles by metadata.name and
	// metadata.namespace, in the hub's API server. Defaults to all.
	FieldSelector fields.Selector

	// Placement names a decision of a scheduler (KEP-5313): only the clusters
	// that it has decided on are provided. Defaults to none.
	Placement *hub.Placement

	// TrustAnnotations lets the hub's profiles name their clusters by the
	// annotation inventory.AnnotationClusterName, which is ignored otherwise:
	// whoever may write a profile in one namespace could take the name of a
	// cluster of another.
	TrustAnnotations bool

	// Selection selects by what profiles say, in this process. Defaults to all.
	Selection inventory.Selection

	// IsReady says whether the cluster of a profile is to be engaged, after
	// Selection. It is asked with each version of a profile, between those of
	// other clusters, and must return at once: no requests, no waiting. The
	// context ends when the provider does. Defaults to all.
	IsReady func(ctx context.Context, clp *inventory.Profile) bool

	// ClusterName names the cluster of a profile. Defaults to
	// inventory.ClusterName: "namespace/name".
	ClusterName func(clp *inventory.Profile) multicluster.ClusterName

	// ClusterOptions are those of controller-runtime's clusters, for all of them.
	ClusterOptions []cluster.Option

	// ClusterOptionsFor returns the options for the cluster of a profile, which
	// are applied after ClusterOptions. It may be called from any goroutine.
	// Defaults to none.
	ClusterOptionsFor func(clp *inventory.Profile) []cluster.Option

	// RESTOptions change the rest.Config of each cluster before it is used.
	RESTOptions []func(cfg *rest.Config) error

	// NewCluster makes the cluster of a profile. It must use the config's
	// transport. Defaults to cluster.New.
	NewCluster func(ctx context.Context, clp *inventory.Profile, cfg *rest.Config, opts ...cluster.Option) (cluster.Cluster, error)

	// ConnectTimeout bounds one attempt to connect and sync a cluster. Defaults
	// to 30 s.
	ConnectTimeout time.Duration

	// StartupLimit bounds how many clusters connect or list at once. Defaults to
	// 32. Less than zero means no bound.
	StartupLimit int

	// Probe says how the health of engaged clusters is watched. Its fields have
	// defaults of their own.
	Probe fleet.ProbeOptions

	// MinBackoff and MaxBackoff bound the wait after a failed attempt. They
	// default to 1 s and 5 min.
	MinBackoff, MaxBackoff time.Duration

	// Clock is what the fleet goes by. It is for tests. Defaults to the real one.
	Clock clock.WithTickerAndDelayedExecution
}
