// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

// watching is a strategy with watches.
type watching struct {
	kubeconfigstrategy.Interface
	watches []kubeconfigstrategy.CustomWatch
}

func (w watching) CustomWatches() []kubeconfigstrategy.CustomWatch { return w.watches }

// counting is a manager whose local one counts what is added to it.
type counting struct {
	mcmanager.Manager
	local *countingLocal
}

func (c counting) GetLocalManager() manager.Manager { return c.local }

type countingLocal struct {
	manager.Manager
	added int
}

func (c *countingLocal) Add(r manager.Runnable) error {
	c.added++
	return c.Manager.Add(r)
}

func TestASetUpThatHasFailedHalfWayIsNotMadeAgain(t *testing.T) {
	g := NewWithT(t)
	provider, err := New(Options{KubeconfigStrategyOption: kubeconfigstrategy.Option{
		Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "test"},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	provider.strategy.Interface = watching{provider.strategy.Interface, []kubeconfigstrategy.CustomWatch{
		{Object: &corev1.Secret{}, EventHandler: &handler.EnqueueRequestForObject{}},
		// The scheme does not know this one.
		{Object: &inventory.Profile{}, EventHandler: &handler.EnqueueRequestForObject{}, Opts: []builder.WatchesOption{builder.OnlyMetadata}},
	}}
	mgr, err := mcmanager.New(mctest.New(t).Config(), provider, mcmanager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	g.Expect(err).NotTo(HaveOccurred())
	local := &countingLocal{Manager: mgr.GetLocalManager()}

	first := provider.SetupWithManager(counting{mgr, local})
	g.Expect(first).To(MatchError(And(ContainSubstring("cannot be set up"), ContainSubstring("ClusterProfile"))))
	g.Expect(local.added).To(Equal(1), "the controller is the manager's before its watches are known")
	g.Expect(provider.SetupWithManager(counting{mgr, local})).To(MatchError(first.Error()))
	g.Expect(local.added).To(Equal(1))
	err = provider.Start(t.Context(), counting{mgr, local})
	g.Expect(multicluster.IsTerminal(err)).To(BeTrue(), "trying again is of no use")
	g.Expect(err).To(MatchError(ContainSubstring("cannot be set up")))
}
