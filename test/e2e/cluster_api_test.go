// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	clusterapi "github.com/rollcall-dev/rollcall/providers/cluster-api"
)

// clusterAPI is the version of Cluster API whose definitions are installed.
const clusterAPI = "sigs.k8s.io/cluster-api@v1.14.2"

// installClusters installs Cluster API's definition of Cluster in the hub. It takes it
// from a module that is not a dependency.
func installClusters(t *testing.T, p *controlPlanes) {
	t.Helper()
	g := NewWithT(t)
	text, err := output(t.Context(), "go", "mod", "download", "-json", clusterAPI)
	g.Expect(err).NotTo(HaveOccurred())
	var module struct{ Dir string }
	g.Expect(json.Unmarshal([]byte(text), &module)).To(Succeed())
	_, err = envtest.InstallCRDs(p.hub.Config, envtest.CRDInstallOptions{
		Paths:              []string{filepath.Join(module.Dir, "core", "config", "crd", "bases", "cluster.x-k8s.io_clusters.yaml")},
		ErrorIfPathMissing: true, MaxTime: time.Minute,
	})
	g.Expect(err).NotTo(HaveOccurred())
}

// createFromFile creates the objects of a file.
func createFromFile(t *testing.T, c client.Client, path string) {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(u)
		if errors.Is(err, io.EOF) {
			return
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Create(t.Context(), u)).To(Succeed())
	}
}

// kubeconfigFor returns a kubeconfig with a user.
func kubeconfigFor(t *testing.T, config *rest.Config, user *clientcmdapi.AuthInfo) []byte {
	t.Helper()
	text, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": user},
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return text
}

// TestClusterAPI follows a Cluster from its creation to its deletion, with the
// permissions of the example and no others.
func TestClusterAPI(t *testing.T) {
	p, g := realPlanes(t), NewWithT(t)
	ctx := t.Context()
	installClusters(t, p)
	createFromFile(t, p.hub.Client, "../../examples/cluster-api/rbac.yaml")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cluster-api-controller"}}
	token, err := p.hub.IssueToken(ctx, account, nil)
	g.Expect(err).NotTo(HaveOccurred())
	management := rest.AnonymousClientConfig(p.hub.Config)
	management.BearerToken = token

	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	hub, err := client.New(p.hub.Config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())

	provider := clusterapi.New(clusterapi.Options{})
	mgr, err := mcmanager.New(management, provider, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	recorder := newRecorder()
	recorder.watchConfigMaps(t, mgr)
	defer mctest.StartManager(t, mgr)()

	const name = "default/capi-east"
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "capi-east", Finalizers: []string{clusterv1.ClusterFinalizer}},
		Spec:       clusterv1.ClusterSpec{Topology: clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: "v1.36.3"}},
	}
	g.Expect(hub.Create(ctx, cluster)).To(Succeed())
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "capi-east-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "capi-east"}},
		Type:       clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": kubeconfigFor(t, p.east.Config, &clientcmdapi.AuthInfo{
			ClientCertificateData: p.east.Config.CertData, ClientKeyData: p.east.Config.KeyData,
		})},
	}
	g.Expect(hub.Create(ctx, secret)).To(Succeed())
	g.Expect(p.east.CreateConfigMap(ctx, "capi-first")).To(Succeed())
	setStatus := func(conditions ...metav1.Condition) {
		t.Helper()
		cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		cluster.Status.Conditions = conditions
		g.Expect(hub.Status().Update(ctx, cluster)).To(Succeed())
	}
	setStatus(metav1.Condition{Type: clusterv1.ClusterControlPlaneAvailableCondition, Status: metav1.ConditionTrue, Reason: "Available", LastTransitionTime: metav1.Now()})
	g.Eventually(func() bool { return recorder.reconciled(name, "capi-first") }).Should(BeTrue(), "%v", provider.Status())

	cl, err := provider.Get(ctx, name)
	g.Expect(err).NotTo(HaveOccurred())
	profile, _ := fleet.ProfileFrom(cl)
	g.Expect(profile.Status.Version.Kubernetes).To(Equal("v1.36.3"))
	stored := profile.DeepCopy()
	g.Expect(p.hub.Client.Create(ctx, stored)).To(Succeed())
	stored.Status = *profile.Status.DeepCopy()
	g.Expect(p.hub.Client.Status().Update(ctx, stored)).To(Succeed(), "the profile is valid in a hub")
	g.Expect(inventory.Fingerprint(stored)).To(Equal(inventory.Fingerprint(profile)))
	g.Expect(p.hub.Client.Delete(ctx, stored)).To(Succeed())

	// Another credential: the connection is switched.
	createFromFile(t, p.east.Client, "testdata/administrator.yaml")
	administrator := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "capi-administrator"}}
	token, err = p.east.IssueToken(ctx, administrator, nil)
	g.Expect(err).NotTo(HaveOccurred())
	secret.Data["value"] = kubeconfigFor(t, p.east.Config, &clientcmdapi.AuthInfo{Token: token})
	g.Expect(hub.Update(ctx, secret)).To(Succeed())
	g.Eventually(func() string { return cl.GetConfig().BearerToken }).Should(Equal(token))

	// While it is being deleted it works until the control plane is gone.
	g.Expect(hub.Delete(ctx, cluster)).To(Succeed())
	g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
	deleting := metav1.Condition{Type: clusterv1.ClusterDeletingCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Now()}
	deleting.Reason = clusterv1.ClusterDeletingWaitingForWorkersDeletionReason
	setStatus(deleting)
	g.Expect(p.east.CreateConfigMap(ctx, "capi-second")).To(Succeed())
	g.Eventually(func() bool { return recorder.reconciled(name, "capi-second") }).Should(BeTrue(), "%v", provider.Status())
	g.Expect(recorder.engagements(name)).To(Equal(1))
	deleting.Reason = clusterv1.ClusterDeletingWaitingForInfrastructureDeletionReason
	setStatus(deleting)
	g.Eventually(provider.Status).Should(BeEmpty())

	cluster.Finalizers = nil
	g.Expect(hub.Update(ctx, cluster)).To(Succeed())
	g.Expect(hub.Delete(ctx, secret)).To(Succeed())
	for _, created := range []string{"capi-first", "capi-second"} {
		g.Expect(p.east.DeleteConfigMap(ctx, created)).To(Succeed())
	}
}
