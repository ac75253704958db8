// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestAClusterServesClients(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	cl, err := client.New(c.Config(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "a-"}, Data: map[string]string{"a": "b"}}
	g.Expect(cl.Create(t.Context(), cm)).To(Succeed())
	g.Expect(cm.UID).NotTo(BeEmpty())

	var list corev1.ConfigMapList
	g.Expect(cl.List(t.Context(), &list)).To(Succeed())
	g.Expect(list.Items).To(HaveLen(1))
	g.Expect(list.Items[0].Data).To(HaveKeyWithValue("a", "b"))

	cm.Data["a"] = "c"
	g.Expect(cl.Update(t.Context(), cm)).To(Succeed())
	g.Expect(c.Get(client.ObjectKeyFromObject(cm), cm)).To(Succeed())
	g.Expect(cm.Data).To(HaveKeyWithValue("a", "c"))

	cs := kubernetes.NewForConfigOrDie(c.Config())
	factory := informers.NewSharedInformerFactory(cs, 0)
	lister := factory.Core().V1().ConfigMaps().Lister()
	informer := factory.Core().V1().ConfigMaps().Informer()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	g.Expect(factory.WaitForCacheSync(ctx.Done())).NotTo(ContainElement(false))
	g.Expect(c.OpenWatches("configmaps")).To(Equal(1))
	g.Expect(c.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}})).To(Succeed())
	g.Eventually(func() error {
		_, err := lister.ConfigMaps("default").Get("b")
		return err
	}).Should(Succeed())
	_ = informer

	c.Fault(mctest.Refuse)
	g.Expect(cl.Get(ctx, client.ObjectKeyFromObject(cm), cm)).To(MatchError(ContainSubstring("refused")))
	c.Clear()
	g.Eventually(func() error { return cl.Get(ctx, client.ObjectKeyFromObject(cm), cm) }).Should(Succeed())

	lift := c.Fault(mctest.Hang.For("get"))
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	g.Expect(cl.Get(short, client.ObjectKeyFromObject(cm), cm)).To(MatchError(context.DeadlineExceeded))
	lift()
	g.Expect(cl.Get(ctx, client.ObjectKeyFromObject(cm), cm)).To(Succeed())
	g.Expect(cl.Delete(ctx, cm)).To(Succeed())
}
