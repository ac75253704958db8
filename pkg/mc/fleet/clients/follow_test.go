// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/clients"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestHeldClientFollows(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(e *env, c *mctest.Cluster)
	}{
		{"a new token is reported", func(e *env, c *mctest.Cluster) {
			c.AddToken("second", "user")
			e.set(c.Name(), c.ConfigFor("second"))
			e.notify()
			c.RevokeToken(c.AdminToken())
		}},
		{"a new token after a 401", func(e *env, c *mctest.Cluster) {
			c.AddToken("second", "user")
			e.set(c.Name(), c.ConfigFor("second"))
			c.RevokeToken(c.AdminToken())
		}},
		{"the endpoint moves", func(e *env, c *mctest.Cluster) {
			c.Move()
			e.set("moved", c.Config())
			e.put(profile(c.Name(), "moved"))
		}},
		{"the certificate authority changes", func(e *env, c *mctest.Cluster) {
			c.RotateCA()
			c.CloseConnections()
			e.set("rotated", c.Config())
			e.put(profile(c.Name(), "rotated"))
		}},
		{"the profile is recreated", func(e *env, c *mctest.Cluster) {
			c.Move()
			e.set(c.Name(), c.Config())
			p := profile(c.Name(), c.Name())
			p.UID = "another"
			e.put(p)
		}},
		{"the access is broken in between", func(e *env, c *mctest.Cluster) {
			before := e.count("broken")
			e.put(profile(c.Name(), "broken"))
			NewWithT(e.t).Eventually(func() int { return e.count("broken") }).Should(BeNumerically(">", before))
			NewWithT(e.t).Expect(read(e.t.Context(), e.client(c))).To(Succeed(), "the current connection is kept")
			c.AddToken("second", "user")
			e.set("broken", c.ConfigFor("second"))
			NewWithT(e.t).Eventually(func() int { return e.count("broken") }).Should(Equal(before+2), "tried again without a request")
			c.RevokeToken(c.AdminToken())
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			f := mctest.NewFleet(t, 2)
			c, good := f.Cluster(0), f.Cluster(1)
			e := newEnv(t, nil, f.Clusters()...)
			held := e.client(c)
			g.Expect(read(t.Context(), held)).To(Succeed())
			watching, err := e.client(good).Watch(t.Context(), &corev1.ConfigMapList{})
			g.Expect(err).NotTo(HaveOccurred())
			defer watching.Stop()

			test.change(e, c)
			g.Eventually(reads(t, held)).Should(Succeed())
			g.Expect(e.client(c)).To(BeIdenticalTo(held))
			g.Eventually(c.Connections).Should(Equal(1), "the old connection is closed")
			g.Expect(good.OpenWatches("configmaps")).To(Equal(1), "others are unharmed")
		})
	}
}

func TestUnchangedAccessIsKept(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	e := newEnv(t, nil, c)
	watching, err := e.client(c).Watch(t.Context(), &corev1.ConfigMapList{})
	g.Expect(err).NotTo(HaveOccurred())
	defer watching.Stop()
	for range 100 { // heartbeats
		p := profile(c.Name(), c.Name())
		p.Labels = map[string]string{"beat": "1"}
		e.put(p)
	}
	g.Expect(e.count(c.Name())).To(Equal(1), "a heartbeat does not concern the access")
	e.notify()
	g.Eventually(func() int { return e.count(c.Name()) }).Should(Equal(2))
	g.Expect(read(t.Context(), e.client(c))).To(Succeed())
	g.Expect(c.OpenWatches("configmaps")).To(Equal(1), "an equal access switches nothing")
}

func TestFlappingProfile(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	e := newEnv(t, nil, c)
	held := e.client(c)
	for _, server := range []string{"a", "b", "last"} {
		c.AddToken(server, "user")
		e.set(server, c.ConfigFor(server))
	}
	for range 100 {
		for _, server := range []string{"a", "b"} {
			e.put(profile(c.Name(), server))
			g.Expect(read(t.Context(), held)).To(Succeed())
		}
	}
	g.Expect(e.count("a")+e.count("b")).To(BeNumerically("<=", 20), "not once per change")
	e.put(profile(c.Name(), "last"))
	g.Eventually(func() int { return e.count("last") }).Should(Equal(1))
	for _, token := range []string{"a", "b", c.AdminToken()} {
		c.RevokeToken(token)
	}
	g.Eventually(reads(t, held)).Should(Succeed())
}

func TestPersistent401(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	e := newEnv(t, nil, c)
	held := e.client(c)
	c.Fault(mctest.Unauthorized)
	for range 200 {
		g.Expect(read(t.Context(), held)).To(Satisfy(apierrors.IsUnauthorized))
	}
	g.Expect(e.count(c.Name())).To(BeNumerically("<=", 3), "resolved again with a backoff only")
	c.Clear()
	g.Expect(read(t.Context(), held)).To(Succeed())
}

func TestProfileRemovedAndBack(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	c, good := f.Cluster(0), f.Cluster(1)
	e := newEnv(t, nil, f.Clusters()...)
	held := e.client(c)
	watching, err := held.Watch(t.Context(), &corev1.ConfigMapList{})
	g.Expect(err).NotTo(HaveOccurred())
	defer watching.Stop()
	underWay := make(chan error)
	c.Fault(mctest.Hang.For("create"))
	go func() {
		underWay <- held.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	}()
	g.Eventually(func() int { return c.Requests("create", "") }).Should(Equal(1))

	e.remove(c.Name())
	g.Expect(<-underWay).To(MatchError(clients.ErrProfileNotFound), "the request under way")
	g.Eventually(watching.ResultChan()).Should(BeClosed())
	g.Expect(read(t.Context(), held)).To(MatchError(clients.ErrProfileNotFound))
	_, err = e.Client(t.Context(), ref(c.Name()))
	g.Expect(err).To(MatchError(clients.ErrProfileNotFound))
	g.Eventually(c.Connections).Should(BeZero())

	c.Clear()
	c.Move()
	e.set("back", c.Config())
	e.put(profile(c.Name(), "back"))
	g.Expect(read(t.Context(), held)).To(Succeed(), "also at another address")
	g.Expect(read(t.Context(), e.client(c))).To(Succeed())
	g.Eventually(c.Connections).Should(Equal(1), "both share the connection")
	g.Expect(read(t.Context(), e.client(good))).To(Succeed())
}

func TestRebuiltCluster(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	e := newEnv(t, nil, c)
	held := e.client(c)
	widgets := &unstructured.UnstructuredList{}
	widgets.SetAPIVersion("example.com/v1")
	widgets.SetKind("WidgetList")
	g.Expect(held.List(t.Context(), widgets)).To(Satisfy(meta.IsNoMatchError))

	c.Rebuild()
	g.Expect(c.Create(widgetDefinition())).To(Succeed())
	g.Eventually(func() error { return held.List(t.Context(), widgets) }).Should(Succeed(), "a kind that only the new one has")
	namespace := &corev1.Namespace{}
	g.Expect(held.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, namespace)).To(Succeed())
	g.Expect(namespace.UID).To(Equal(c.UID()))
}

func TestOtherClusterWithOtherKinds(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	c, next := f.Cluster(0), f.Cluster(1)
	g.Expect(next.Create(widgetDefinition())).To(Succeed())
	e := newEnv(t, nil, c)
	held := e.client(c)
	e.set("next", next.Config())
	e.put(profile(c.Name(), "next"))
	widgets := &unstructured.UnstructuredList{}
	widgets.SetAPIVersion("example.com/v1")
	widgets.SetKind("WidgetList")
	g.Eventually(func() error { return held.List(t.Context(), widgets) }).Should(Succeed())
	g.Eventually(c.Connections).Should(BeZero())
}

func widgetDefinition() *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
	d.Spec.Group, d.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
		},
	}}
	return d
}
