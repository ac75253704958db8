// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/rollcall-dev/rollcall/pkg/mc"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestMain(m *testing.M) {
	mc.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

func TestProgram(t *testing.T) {
	g := NewWithT(t)
	servers := mctest.NewFleet(t, 3)
	local, eu, us := servers.Cluster(0), servers.Cluster(1), servers.Cluster(2)
	meta := func(name string) mc.ObjectMeta {
		return mc.ObjectMeta{
			Namespace: "default", Name: name,
			Labels:      map[string]string{teamLabel: "red"},
			Annotations: map[string]string{homeAnnotation: "eu"},
		}
	}
	g.Expect(us.Create(&corev1.ConfigMap{ObjectMeta: meta("settings"), Data: map[string]string{"key": "value"}})).To(Succeed())
	g.Expect(us.Create(&corev1.Secret{ObjectMeta: meta("a")})).To(Succeed())
	g.Expect(us.Create(&corev1.Secret{ObjectMeta: meta("b")})).To(Succeed())
	g.Expect(eu.Create(&corev1.Secret{ObjectMeta: meta("c")})).To(Succeed())

	provider := newDirectory(map[multicluster.ClusterName]*rest.Config{"eu": eu.Config(), "us": us.Config()})
	options := mctest.ManagerOptions()
	options.WebhookServer = webhook.NewServer(webhook.Options{Port: -1}) // called below without a port
	mgr, err := setUp(local.Config(), provider, options)
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)

	data := func(c *mctest.Cluster, name string) func() map[string]string {
		return func() map[string]string {
			cm := &corev1.ConfigMap{}
			_ = c.Get(client.ObjectKey{Namespace: "default", Name: name}, cm)
			return cm.Data
		}
	}
	g.Eventually(data(local, "us-settings")).WithTimeout(mctest.Timeout).Should(Equal(map[string]string{"key": "value"}))
	g.Eventually(data(eu, "team-red")).WithTimeout(mctest.Timeout).Should(Equal(map[string]string{"eu": "1", "us": "2"}))
	g.Expect(data(us, "team-red")()).To(BeNil(), "the team is not at home here")

	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/mutate--v1-configmap", strings.NewReader(`{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": {"uid": "u", "operation": "CREATE", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}}
	}`))
	request.Header.Set("Content-Type", "application/json")
	mgr.GetWebhookServer().WebhookMux().ServeHTTP(answer, request)
	g.Expect(answer.Body.String()).To(ContainSubstring(`"allowed":true`))
	g.Expect(answer.Body.String()).To(ContainSubstring(`"patch":`))
}
