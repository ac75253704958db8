// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// cached runs a cache of a namespace until the test ends.
func (s *server) cached(t *testing.T, namespace string) cache.Cache {
	t.Helper()
	c, err := cache.New(s.config, cache.Options{Scheme: testScheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		t.Fatal(err)
	}
	mctest.StartManager(t, c)
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not sync")
	}
	return c
}

var cacheBehaviours = []behaviour{
	{"a cache follows typed, unstructured and metadata objects", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 2)
		c := s.cached(t, namespace)
		untyped := &unstructured.UnstructuredList{}
		untyped.SetAPIVersion("v1")
		untyped.SetKind("ConfigMapList")
		partial := &metav1.PartialObjectMetadataList{}
		partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		var typed corev1.ConfigMapList
		count := func(want int) func(Gomega) {
			return func(g Gomega) {
				for _, list := range []client.ObjectList{&typed, untyped, partial} {
					g.Expect(c.List(t.Context(), list)).To(Succeed())
				}
				g.Expect([]int{len(typed.Items), len(untyped.Items), len(partial.Items)}).To(HaveEach(want))
			}
		}
		g.Eventually(count(2)).WithTimeout(mctest.Timeout).Should(Succeed())
		cm := s.configMap(t, namespace, "new")
		g.Eventually(count(3)).WithTimeout(mctest.Timeout).Should(Succeed())
		g.Expect(s.client.Delete(t.Context(), cm)).To(Succeed())
		g.Eventually(count(2)).WithTimeout(mctest.Timeout).Should(Succeed())
	}},
	{"leaders are elected, and succeeded", func(t *testing.T, s *server) {
		namespace := s.namespace(t)
		elect := func(ctx context.Context, id string, leading chan<- string) {
			lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, "lock",
				s.clientset.CoreV1(), s.clientset.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: id})
			if err != nil {
				t.Error(err)
				return
			}
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: lock, ReleaseOnCancel: true,
				LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: 200 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { leading <- id },
					OnStoppedLeading: func() {},
				},
			})
		}
		leading := make(chan string, 2)
		first, stopFirst := context.WithCancel(t.Context())
		second, stopSecond := context.WithCancel(t.Context())
		done := make(chan struct{}, 2)
		defer func() {
			stopFirst()
			stopSecond()
			<-done
			<-done
		}()
		g := NewWithT(t)
		go func() { elect(first, "first", leading); done <- struct{}{} }()
		g.Eventually(leading).WithTimeout(mctest.Timeout).Should(Receive(Equal("first")))
		go func() { elect(second, "second", leading); done <- struct{}{} }()
		stopFirst()
		g.Eventually(leading).WithTimeout(mctest.Timeout).Should(Receive(Equal("second")))
	}},
}

var customBehaviours = []behaviour{
	{"a custom resource is written, read and deleted", func(t *testing.T, s *server) {
		g := NewWithT(t)
		w := newCustom(widgetKind, s.namespace(t), "a", map[string]any{"color": "red"})
		g.Expect(s.client.Create(t.Context(), w)).To(Succeed())
		g.Expect(w.GetGeneration()).To(BeEquivalentTo(1))
		g.Expect(unstructured.SetNestedField(w.Object, "blue", "spec", "color")).To(Succeed())
		g.Expect(s.client.Update(t.Context(), w)).To(Succeed())
		g.Expect(w.GetGeneration()).To(BeEquivalentTo(2))
		g.Expect(s.client.Delete(t.Context(), w)).To(Succeed())
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(w), w)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}},
	{"a custom resource's status is dropped when it is created", func(t *testing.T, s *server) {
		g := NewWithT(t)
		w := newCustom(widgetKind, s.namespace(t), "a", map[string]any{})
		w.Object["status"] = map[string]any{"ready": true}
		g.Expect(s.client.Create(t.Context(), w)).To(Succeed())
		g.Expect(w.Object).NotTo(HaveKey("status"))
	}},
	{"without a status subresource, status is a field like others", func(t *testing.T, s *server) {
		g := NewWithT(t)
		w := newCustom(gadgetKind, s.namespace(t), "a", map[string]any{})
		w.Object["status"] = map[string]any{"ready": true}
		g.Expect(s.client.Create(t.Context(), w)).To(Succeed())
		g.Expect(w.Object).To(HaveKey("status"))
		w.Object["status"] = map[string]any{"ready": false}
		g.Expect(s.client.Update(t.Context(), w)).To(Succeed())
		g.Expect(w.GetGeneration()).To(BeEquivalentTo(2))
		g.Expect(s.client.Status().Update(t.Context(), w)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}},
	{"custom resources are selected by the fields that they declare", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		for name, color := range map[string]string{"a": "red", "b": "blue"} {
			g.Expect(s.client.Create(t.Context(), newCustom(widgetKind, namespace, name, map[string]any{"color": color}))).To(Succeed())
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(widgetKind.Group + "/v1")
		list.SetKind("WidgetList")
		g.Expect(s.client.List(t.Context(), list, client.InNamespace(namespace), client.MatchingFields{"spec.color": "blue"})).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].GetName()).To(Equal("b"))
	}},
	{"a definition adds its kind to discovery, and its deletion removes it", func(t *testing.T, s *server) {
		g := NewWithT(t)
		kind := metav1.GroupVersionKind{Group: "passing.example.org", Version: "v1", Kind: "Thing"}
		crd := definition(kind, apiextensionsv1.ClusterScoped, true)
		s.define(t, crd, kind)
		d := discovery.NewDiscoveryClientForConfigOrDie(s.config)
		serves := func() []string {
			var out []string
			_, lists, err := d.ServerGroupsAndResources()
			if err != nil {
				return []string{err.Error()}
			}
			for _, list := range lists {
				for _, r := range list.APIResources {
					if list.GroupVersion == "passing.example.org/v1" {
						out = append(out, r.Name)
					}
				}
			}
			return out
		}
		g.Eventually(serves).WithTimeout(mctest.Timeout).Should(ConsistOf("things", "things/status"))
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(Succeed())
		g.Expect(crd.Status.AcceptedNames.Singular).To(Equal("thing"))
		g.Expect(crd.Status.StoredVersions).To(Equal([]string{"v1"}))
		g.Expect(s.client.Create(t.Context(), newCustom(kind, "", "a", map[string]any{}))).To(Succeed())
		g.Expect(s.client.Delete(t.Context(), crd)).To(Succeed())
		g.Eventually(serves).WithTimeout(mctest.Timeout).Should(BeEmpty())
	}},
	{"a definition that changes its versions ends the watches of its resource", func(t *testing.T, s *server) {
		g := NewWithT(t)
		v1 := metav1.GroupVersionKind{Group: "changing.example.org", Version: "v1", Kind: "Thing"}
		v2 := v1
		v2.Version = "v2"
		s.define(t, definition(v1, apiextensionsv1.ClusterScoped, true), v1)
		object := newCustom(v1, "", "a", map[string]any{})
		g.Expect(s.client.Create(t.Context(), object)).To(Succeed())
		dynamicClient := dynamic.NewForConfigOrDie(s.config)
		in := func(kind metav1.GroupVersionKind) dynamic.ResourceInterface {
			return dynamicClient.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: "things"})
		}
		w, err := in(v1).Watch(t.Context(), metav1.ListOptions{ResourceVersion: object.GetResourceVersion()})
		g.Expect(err).NotTo(HaveOccurred())
		serve := func(served ...bool) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(s.client.Get(t.Context(), client.ObjectKey{Name: "things.changing.example.org"}, crd)).To(Succeed())
			if len(crd.Spec.Versions) == 1 {
				crd.Spec.Versions = append(crd.Spec.Versions, *crd.Spec.Versions[0].DeepCopy())
				crd.Spec.Versions[1].Name, crd.Spec.Versions[1].Storage = "v2", false
			}
			crd.Spec.Versions[0].Served, crd.Spec.Versions[1].Served = served[0], served[1]
			g.Expect(s.client.Update(t.Context(), crd)).To(Succeed())
		}
		list := func(kind metav1.GroupVersionKind) func() error {
			return func() error {
				_, err := in(kind).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
				return err
			}
		}

		serve(true, true)
		g.Eventually(w.ResultChan()).WithTimeout(mctest.Timeout).Should(BeClosed())
		g.Eventually(list(v2)).WithTimeout(mctest.Timeout).Should(Succeed())
		got, err := in(v2).Get(t.Context(), "a", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.GetAPIVersion()).To(Equal("changing.example.org/v2"))
		g.Expect(got.GetResourceVersion()).To(Equal(object.GetResourceVersion()))

		serve(false, true)
		g.Eventually(list(v1)).WithTimeout(mctest.Timeout).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
		g.Eventually(list(v2)).WithTimeout(mctest.Timeout).Should(Succeed())
		serve(true, false)
		g.Eventually(list(v1)).WithTimeout(mctest.Timeout).Should(Succeed())
		g.Eventually(list(v2)).WithTimeout(mctest.Timeout).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}},
	{"a definition must have the name of its resource", func(t *testing.T, s *server) {
		crd := definition(widgetKind, apiextensionsv1.NamespaceScoped, true)
		crd.Name = "other.example.org"
		NewWithT(t).Expect(s.client.Create(t.Context(), crd)).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	}},
}

var identityBehaviours = []behaviour{
	{"a service account token authenticates the service account", func(t *testing.T, s *server) {
		g := NewWithT(t)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(t), Name: "robot"}}
		g.Expect(s.client.Create(t.Context(), account)).To(Succeed())
		request := &authenticationv1.TokenRequest{}
		g.Expect(s.client.SubResource("token").Create(t.Context(), account, request)).To(Succeed())
		g.Expect(request.Status.ExpirationTimestamp.Time).To(BeTemporally(">", time.Now()))

		config := rest.AnonymousClientConfig(s.config)
		config.BearerToken = request.Status.Token
		review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
			Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(review.Status.UserInfo.Username).To(Equal("system:serviceaccount:" + account.Namespace + ":robot"))
		g.Expect(review.Status.UserInfo.UID).To(BeEquivalentTo(account.UID))
		g.Expect(review.Status.UserInfo.Groups).To(ConsistOf(
			"system:serviceaccounts", "system:serviceaccounts:"+account.Namespace, "system:authenticated"))
	}},
	{"an unknown token is unauthorized", func(t *testing.T, s *server) {
		config := rest.AnonymousClientConfig(s.config)
		config.BearerToken = "unknown"
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		NewWithT(t).Expect(err).To(MatchError(apierrors.IsUnauthorized, "IsUnauthorized"))
	}},
	{"probes and the version answer", func(t *testing.T, s *server) {
		g := NewWithT(t)
		for _, path := range []string{"/healthz", "/livez", "/readyz"} {
			body, err := s.clientset.RESTClient().Get().AbsPath(path).DoRaw(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(body)).To(Equal("ok"))
		}
		version, err := s.clientset.Discovery().ServerVersion()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(version.GitVersion).To(HavePrefix("v1."))
	}},
}
