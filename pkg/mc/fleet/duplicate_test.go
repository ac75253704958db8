// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// When the profile in use is removed, its cluster is reconciled under the name of a
// profile whose author is not trusted with its name, after all reconciles under the
// first name have returned.
func TestDuplicateTakesOver(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	g.Expect(c.Create(configMap("one"))).To(Succeed())
	source := newFakeSource()
	f, err := fleet.New(fleet.Options{Source: source, Credentials: newFakeMethod(c)})
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := mcmanager.New(c.Config(), f, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	began, resume := make(chan multicluster.ClusterName, 10), make(chan struct{})
	isOne := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == "one" })
	g.Expect(mcbuilder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}, mcbuilder.WithPredicates(isOne)).Complete(mcreconcile.Func(
		func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			began <- req.ClusterName
			select {
			case <-resume: // also when the context has ended
			case <-t.Context().Done(): // the test has failed
			}
			return reconcile.Result{}, nil
		}))).To(Succeed())
	mctest.StartManager(t, mgr)
	source.put(profile("a", c.Config().Host))
	g.Eventually(began).Should(Receive(Equal(multicluster.ClusterName("fleet/a"))))
	source.put(member("other", "b", c.Config().Host, ""))
	source.remove("a")
	g.Eventually(func() []fleet.ClusterStatus { return f.Status() }).Should(ContainElement(And(
		HaveField("Name", multicluster.ClusterName("other/b")), HaveField("State", fleet.Connecting), HaveField("Reason", fleet.DuplicateCluster))))
	g.Consistently(began).WithTimeout(100 * time.Millisecond).ShouldNot(Receive())
	close(resume)
	g.Eventually(began).Should(Receive(Equal(multicluster.ClusterName("other/b"))))
	g.Expect(f.Status()).To(HaveLen(1))
}
