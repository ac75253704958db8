// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// When the profile in use is removed or stops working, its cluster goes on with
// another one: nothing is listed, and no event is missed.
func TestAnotherProfileTakesOver(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(env *testEnv, c *mctest.Cluster)
	}{
		{"the profile is removed", func(env *testEnv, _ *mctest.Cluster) { env.source.remove("a") }},
		{"its credentials are revoked", func(_ *testEnv, c *mctest.Cluster) {
			c.RevokeToken("a")
			c.CloseConnections()
		}},
		{"its server does not exist any more, and no plugin runs", func(env *testEnv, c *mctest.Cluster) {
			env.credentials.mu.Lock()
			delete(env.credentials.configs, "https://a.example")
			env.credentials.mu.Unlock()
			c.RevokeToken("a")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			c.AddToken("a", "a", "system:masters")
			c.AddToken("b", "b", "system:masters")
			env := start(t, nil, func(o *fleet.Options) {
				o.Connection.Probe = fleet.ProbeOptions{Interval: 20 * time.Millisecond, Timeout: time.Second, FailureThreshold: 2}
			})
			env.credentials.set("https://a.example", c.ConfigFor("a"))
			env.credentials.set("https://b.example", c.ConfigFor("b"))
			env.source.put(member("fleet", "a", "https://a.example", "m"))
			g.Eventually(env.state("fleet/a")).Should(Equal(fleet.Ready))
			env.source.put(member("fleet", "b", "https://b.example", "m"))
			g.Eventually(env.state("fleet/b")).Should(Equal(fleet.Duplicate))
			cl := env.aware.of("fleet/a")[0].cluster
			informer, err := cl.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{})
			g.Expect(err).NotTo(HaveOccurred())
			seen := make(chan string, 100)
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) { seen <- o.(client.Object).GetName() }})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.Create(configMap("before"))).To(Succeed())
			g.Eventually(seen).Should(Receive(Equal("before")))
			held, err := kubernetes.NewForConfig(cl.GetConfig())
			g.Expect(err).NotTo(HaveOccurred())
			c.ResetRequests()

			tc.fail(env, c)
			g.Expect(c.Create(configMap("meanwhile"))).To(Succeed())
			g.Eventually(func() string { return cl.GetConfig().BearerToken }).Should(Equal("b"))
			g.Eventually(env.state("fleet/a")).Should(Equal(fleet.Ready))
			c.RevokeToken("a")
			g.Eventually(seen).Should(Receive(Equal("meanwhile")))
			g.Expect(c.Create(configMap("after"))).To(Succeed())
			g.Eventually(seen).Should(Receive(Equal("after")))
			_, err = held.CoreV1().ConfigMaps("default").Get(t.Context(), "after", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred(), "clients that users hold go on")
			g.Expect(c.Requests("list", "configmaps")).To(BeZero())
			g.Expect(env.aware.of("fleet/a")).To(HaveLen(1))
			g.Expect(env.aware.of("fleet/b")).To(BeEmpty())
			inUse, ok := fleet.ProfileFrom(cl)
			g.Expect(ok).To(BeTrue())
			g.Expect(inUse.Name).To(Equal("b"))
			g.Expect(fleet.ProfilesFrom(cl)).To(ContainElement(inUse))
		})
	}
}
