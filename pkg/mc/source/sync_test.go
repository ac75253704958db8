// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

func TestSyncWithoutOtherInformers(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	create(t, server, "a")
	server.Fault(mctest.Forbidden.On("secrets"))
	cl := connect(t, server)
	_, err := cl.GetCache().GetInformer(t.Context(), &corev1.Secret{}, cache.BlockUntilSynced(false))
	g.Expect(err).NotTo(HaveOccurred())

	s, _, err := mcsource.Kind(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap]()).
		SyncingForCluster("eu", cl)
	g.Expect(err).NotTo(HaveOccurred())
	q := &queue[mcreconcile.Request]{}
	g.Expect(s.Start(t.Context(), q)).To(Succeed())
	ctx, cancel := context.WithTimeout(t.Context(), mctest.Timeout)
	defer cancel()
	g.Expect(s.WaitForSync(ctx)).To(Succeed())
	g.Expect(q.added()).To(ContainElement(request("eu", "a")), "the initial events have been delivered")
}
