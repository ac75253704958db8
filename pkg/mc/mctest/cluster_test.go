// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
}

func TestFleet(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 3)
	g.Expect(f.Len()).To(Equal(3))
	names, hosts, uids := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range f.Clusters() {
		names[c.Name()], hosts[c.Config().Host], uids[string(c.UID())] = true, true, true
	}
	g.Expect(names).To(HaveLen(3))
	g.Expect(hosts).To(HaveLen(3))
	g.Expect(uids).To(HaveLen(3))

	g.Expect(f.Cluster(0).Create(newConfigMap("a"))).To(Succeed())
	g.Expect(f.Cluster(1).Get(client.ObjectKey{Namespace: "default", Name: "a"}, newConfigMap(""))).
		To(MatchError(apierrors.IsNotFound, "IsNotFound"))

	c, err := kubernetes.NewForConfig(mix(f.Cluster(0).Config(), f.Cluster(1).Config()))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.Discovery().ServerVersion()
	g.Expect(err).To(MatchError(ContainSubstring("certificate")), "each cluster has its own CA")
}

// mix returns a config with the address of one cluster and the CA of another.
func mix(address, authority *rest.Config) *rest.Config {
	out := rest.CopyConfig(address)
	out.TLSClientConfig = authority.TLSClientConfig
	return out
}

func TestClose(t *testing.T) {
	before := goleak.IgnoreCurrent()
	g := NewWithT(t)
	c := mctest.New(t)
	cs := kubernetes.NewForConfigOrDie(c.Config())
	factory := informers.NewSharedInformerFactory(cs, 0)
	factory.Core().V1().ConfigMaps().Informer()
	stop := make(chan struct{})
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	c.Fault(mctest.Hang)
	close(stop)
	factory.Shutdown()
	c.Close()
	g.Expect(c.Connections()).To(BeZero())
	goleak.VerifyNone(t, before)
}

func TestObjects(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t, mctest.Options{Objects: []client.Object{newConfigMap("initial")}})
	cm := newConfigMap("")
	cm.GenerateName = "a-"
	g.Expect(c.Create(cm)).To(Succeed())
	g.Expect(cm.Name).To(HavePrefix("a-"))
	g.Expect(cm.UID).NotTo(BeEmpty())

	stale := cm.DeepCopy()
	cm.Data = map[string]string{"k": "v"}
	g.Expect(c.Update(cm)).To(Succeed())
	stale.Data = map[string]string{"k": "other"}
	g.Expect(c.Update(stale)).To(MatchError(apierrors.IsConflict, "IsConflict"))

	d := deployment("default", "d")
	g.Expect(c.Create(d)).To(Succeed())
	d.Status.Replicas = 3
	g.Expect(c.UpdateStatus(d)).To(Succeed())
	g.Expect(d.Status.Replicas).To(BeEquivalentTo(3))
	g.Expect(c.UpdateStatus(cm)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))

	var typed corev1.ConfigMapList
	g.Expect(c.List(&typed, client.InNamespace("default"))).To(Succeed())
	g.Expect(typed.Items).To(HaveLen(2))
	untyped := &unstructured.UnstructuredList{}
	untyped.SetAPIVersion("v1")
	untyped.SetKind("ConfigMapList")
	g.Expect(c.List(untyped, client.MatchingFields{"metadata.name": "initial"})).To(Succeed())
	g.Expect(untyped.Items).To(HaveLen(1))

	g.Expect(c.Delete(cm)).To(Succeed())
	g.Expect(c.Get(client.ObjectKeyFromObject(cm), cm)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	g.Expect(c.Requests("", "")).To(BeZero())
}

func TestScheme(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	c := mctest.New(t, mctest.Options{Scheme: scheme})
	cl, err := client.New(c.Config(), client.Options{Scheme: c.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	profile := &v1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eu"},
		Spec:       v1alpha1.ClusterProfileSpec{ClusterManager: v1alpha1.ClusterManager{Name: "m"}},
	}
	g.Expect(cl.Create(t.Context(), profile)).To(Succeed())
	profile.Status.Version.Kubernetes = "v1.37.2"
	g.Expect(cl.Status().Update(t.Context(), profile)).To(Succeed())
	g.Expect(c.Get(client.ObjectKeyFromObject(profile), profile)).To(Succeed())
	g.Expect(profile.Status.Version.Kubernetes).To(Equal("v1.37.2"))
	g.Expect(cl.Scheme().Recognizes(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})).To(BeTrue())
}

func TestNamespaceDeletion(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	held, free := newConfigMap("held"), newConfigMap("free")
	held.Namespace, free.Namespace = "a", "a"
	held.Finalizers = []string{"mctest.example.org/hold"}
	g.Expect(c.Create(ns, held, free)).To(Succeed())
	g.Expect(c.Delete(ns)).To(Succeed())
	g.Expect(c.Get(client.ObjectKeyFromObject(free), free)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	g.Expect(c.Get(client.ObjectKeyFromObject(ns), ns)).To(Succeed())
	g.Expect(c.Get(client.ObjectKeyFromObject(held), held)).To(Succeed())
	held.Finalizers = nil
	g.Expect(c.Update(held)).To(Succeed())
	g.Expect(c.Get(client.ObjectKeyFromObject(ns), ns)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
}

func TestTokens(t *testing.T) {
	whoAmI := func(config *rest.Config) (authenticationv1.UserInfo, error) {
		review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
			Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return authenticationv1.UserInfo{}, err
		}
		return review.Status.UserInfo, nil
	}
	t.Run("a token is accepted until it is revoked", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		c.AddToken("secret", "ann", "dev", "ops")
		user, err := whoAmI(c.ConfigFor("secret"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(user.Username).To(Equal("ann"))
		g.Expect(user.Groups).To(ConsistOf("dev", "ops", "system:authenticated"))
		c.RevokeToken("secret")
		_, err = whoAmI(c.ConfigFor("secret"))
		g.Expect(err).To(MatchError(apierrors.IsUnauthorized, "IsUnauthorized"))
	})
	t.Run("an expired token is rejected", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		c.AddExpiringToken("old", time.Now().Add(-time.Second), "ann")
		_, err := whoAmI(c.ConfigFor("old"))
		g.Expect(err).To(MatchError(apierrors.IsUnauthorized, "IsUnauthorized"))
	})
	t.Run("without a token only probes are served", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		_, err := whoAmI(c.ConfigFor(""))
		g.Expect(err).To(MatchError(apierrors.IsUnauthorized, "IsUnauthorized"))
		_, err = kubernetes.NewForConfigOrDie(c.ConfigFor("")).Discovery().ServerVersion()
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("a client certificate is accepted until the CA changes", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		config := c.ConfigFor("")
		config.CertData, config.KeyData = c.ClientCertificate("ann", "dev")
		user, err := whoAmI(config)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(user.Username).To(Equal("ann"))
		g.Expect(user.Groups).To(ContainElement("dev"))
		c.RotateCA()
		config.CAData = c.Config().CAData
		_, err = whoAmI(config)
		g.Expect(err).To(MatchError(apierrors.IsUnauthorized, "IsUnauthorized"))
	})
}

func TestRotateCA(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	before := kubernetes.NewForConfigOrDie(c.Config())
	_, err := before.Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
	c.RotateCA()
	_, err = before.Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred(), "an open connection stays")
	c.CloseConnections()
	g.Eventually(func() error {
		_, err := before.Discovery().ServerVersion()
		return err
	}).Should(MatchError(ContainSubstring("failed to verify certificate")), "a new connection does not trust the new certificate")
	_, err = kubernetes.NewForConfigOrDie(c.Config()).Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
}

func TestMove(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t, mctest.Options{Objects: []client.Object{newConfigMap("a")}})
	before, uid := c.Config(), c.UID()
	c.Move()
	after := c.Config()
	g.Expect(after.Host).NotTo(Equal(before.Host))
	g.Expect(after.CAData).To(Equal(before.CAData))
	g.Expect(c.UID()).To(Equal(uid))
	_, err := kubernetes.NewForConfigOrDie(before).Discovery().ServerVersion()
	g.Expect(err).To(MatchError(ContainSubstring("refused")))
	_, err = kubernetes.NewForConfigOrDie(after).CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

func TestRebuild(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t, mctest.Options{Objects: []client.Object{newConfigMap("a")}})
	cs := kubernetes.NewForConfigOrDie(c.Config())
	before := c.UID()
	c.Rebuild()
	g.Expect(c.UID()).NotTo(BeEmpty())
	g.Expect(c.UID()).NotTo(Equal(before))
	g.Eventually(func() error {
		_, err := cs.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{})
		return err
	}).Should(MatchError(apierrors.IsNotFound, "IsNotFound"), "the old client reaches the new cluster")
}

func TestCounters(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	g.Expect(c.Connections()).To(BeZero())
	cs := kubernetes.NewForConfigOrDie(c.Config())
	_, err := cs.AppsV1().Deployments("default").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = cs.Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Requests("list", "deployments")).To(Equal(1))
	g.Expect(c.Requests("list", "deployments.apps")).To(Equal(1))
	g.Expect(c.Requests("list", "pods")).To(BeZero())
	g.Expect(c.Requests("get", "/version")).To(Equal(1))
	g.Expect(c.Requests("", "")).To(Equal(2))
	g.Expect(c.Connections()).To(Equal(1))
	c.ResetRequests()
	g.Expect(c.Requests("", "")).To(BeZero())

	_, cancel := newInformer(t, cs)
	g.Expect(c.OpenWatches("configmaps")).To(Equal(1))
	g.Expect(c.OpenWatches("")).To(Equal(1))
	g.Expect(c.Requests("list", "configmaps")).To(BeZero(), "the list came over the watch")
	cancel()
	g.Eventually(func() int { return c.OpenWatches("") }).Should(BeZero())
}

// newInformer watches all ConfigMaps until it is cancelled or the test ends.
func newInformer(t *testing.T, cs kubernetes.Interface) (cache.SharedIndexInformer, func()) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(cs, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	stop := make(chan struct{})
	factory.Start(stop)
	cancel := sync.OnceFunc(func() {
		close(stop)
		factory.Shutdown()
	})
	t.Cleanup(cancel)
	for _, synced := range factory.WaitForCacheSync(stop) {
		if !synced {
			t.Fatal("the informer did not sync")
		}
	}
	return informer, cancel
}
