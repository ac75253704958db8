// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestMetadataWatchesLeaveNoGoroutine(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})
	g.Expect(c.Create(configMap("busy"))).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	var storm sync.WaitGroup
	storm.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			busy := configMap("busy")
			busy.Labels = map[string]string{"event": fmt.Sprint(i)}
			if err := c.Update(busy); err != nil {
				t.Error(err)
			}
		}
	})
	running := goleak.IgnoreCurrent()
	for range 20 {
		env.source.put(profile("eu", c.Config().Host))
		g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
		cl, err := env.Get(t.Context(), "fleet/eu")
		g.Expect(err).NotTo(HaveOccurred())
		metadata := &metav1.PartialObjectMetadataList{}
		metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		g.Expect(cl.GetCache().List(t.Context(), metadata)).To(Succeed())
		env.source.remove("eu")
		g.Eventually(env.state("fleet/eu")).Should(BeEmpty())
	}
	cancel()
	storm.Wait()
	g.Eventually(c.Connections).Should(BeZero())
	goleak.VerifyNone(t, running)
}
