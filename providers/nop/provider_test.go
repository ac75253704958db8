// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package nop_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/nop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNoClusters(t *testing.T) {
	g := NewWithT(t)
	mgr, err := mcmanager.New(mctest.New(t).Config(), nop.New(), mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	stop := mctest.StartManager(t, mgr)
	<-mgr.Elected()
	_, err = mgr.GetCluster(t.Context(), "eu")
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
	g.Expect(mgr.GetProvider().IndexField(t.Context(), &corev1.Pod{}, "f", func(client.Object) []string { return nil })).To(Succeed())
	stop()
}
