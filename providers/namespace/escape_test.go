// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/namespace"
)

func unstructuredConfigMap(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func metadataConfigMap(namespace, name string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m
}

func deployment(namespace, name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

var (
	toB   = client.ObjectKey{Namespace: "b", Name: "x"}
	inB   = client.InNamespace("b")
	merge = client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"hacked":"true"}}}`))
	role  = func() *rbacv1.ClusterRole { return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "shared"}} }
	owner = client.FieldOwner("hacker")
)

// escapes are attempts to reach the namespace b, or to write a cluster-scoped object,
// through the cluster of the namespace a.
var escapes = map[string]func(ctx context.Context, cl cluster.Cluster, c client.Client) error{
	"get": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Get(ctx, toB, &corev1.ConfigMap{})
	},
	"get live": func(ctx context.Context, cl cluster.Cluster, _ client.Client) error {
		return cl.GetAPIReader().Get(ctx, toB, &corev1.ConfigMap{})
	},
	"get from the cache": func(ctx context.Context, cl cluster.Cluster, _ client.Client) error {
		return cl.GetCache().Get(ctx, toB, &corev1.ConfigMap{})
	},
	"get unstructured": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Get(ctx, toB, unstructuredConfigMap("", ""))
	},
	"get metadata": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Get(ctx, toB, metadataConfigMap("", ""))
	},
	"list": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.List(ctx, &corev1.ConfigMapList{}, inB)
	},
	"list live": func(ctx context.Context, cl cluster.Cluster, _ client.Client) error {
		return cl.GetAPIReader().List(ctx, &corev1.ConfigMapList{}, inB)
	},
	"list from the cache": func(ctx context.Context, cl cluster.Cluster, _ client.Client) error {
		return cl.GetCache().List(ctx, &corev1.ConfigMapList{}, &client.ListOptions{Namespace: "b"})
	},
	"list unstructured": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		return c.List(ctx, list, inB)
	},
	"list metadata": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		return c.List(ctx, list, inB)
	},
	"create": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Create(ctx, configMap("b", "new"))
	},
	"create unstructured": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Create(ctx, unstructuredConfigMap("b", "new"))
	},
	"create a namespace": func(ctx context.Context, _ cluster.Cluster, c client.Client) error { return c.Create(ctx, ns("new")) },
	"create a cluster role": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
	},
	"create a cluster role with the namespace": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "new"}})
	},
	"update": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Update(ctx, configMap("b", "x"))
	},
	"update a cluster role": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		one := role()
		one.Labels = map[string]string{"hacked": "true"}
		return c.Update(ctx, one)
	},
	"patch": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Patch(ctx, configMap("b", "x"), merge)
	},
	"patch metadata": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Patch(ctx, metadataConfigMap("b", "x"), merge)
	},
	"patch a cluster role": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Patch(ctx, role(), merge)
	},
	"patch the own namespace": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Patch(ctx, ns("a"), merge)
	},
	"delete": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Delete(ctx, configMap("b", "x"))
	},
	"delete unstructured": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Delete(ctx, unstructuredConfigMap("b", "x"))
	},
	"delete metadata": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Delete(ctx, metadataConfigMap("b", "x"))
	},
	"delete a cluster role": func(ctx context.Context, _ cluster.Cluster, c client.Client) error { return c.Delete(ctx, role()) },
	"delete the namespace":  func(ctx context.Context, _ cluster.Cluster, c client.Client) error { return c.Delete(ctx, ns("b")) },
	"delete all": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, inB)
	},
	"delete all of an object's namespace": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.DeleteAllOf(ctx, configMap("b", ""))
	},
	"delete all cluster roles": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.DeleteAllOf(ctx, &rbacv1.ClusterRole{})
	},
	"apply": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Apply(ctx, corev1ac.ConfigMap("x", "b").WithData(map[string]string{"hacked": "true"}), owner)
	},
	"apply unstructured": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(unstructuredConfigMap("b", "x")), owner)
	},
	"apply a cluster role": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Apply(ctx, rbacv1ac.ClusterRole("shared").WithLabels(map[string]string{"hacked": "true"}), owner)
	},
	"update the status": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Status().Update(ctx, deployment("b", "x"))
	},
	"patch the status": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Status().Patch(ctx, deployment("b", "x"), merge)
	},
	"apply the status": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Status().Apply(ctx, corev1ac.Pod("x", "b"), owner)
	},
	"create a status": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Status().Create(ctx, deployment("b", "x"), deployment("b", "x"))
	},
	"patch the status of a namespace": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.Status().Patch(ctx, ns("b"), merge)
	},
	"finalize a namespace": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.SubResource("finalize").Update(ctx, ns("b"))
	},
	"get a scale": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.SubResource("scale").Get(ctx, deployment("b", "x"), &autoscalingv1.Scale{})
	},
	"update a scale": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.SubResource("scale").Update(ctx, deployment("b", "x"), client.WithSubResourceBody(&autoscalingv1.Scale{}))
	},
	"update with a body of another namespace": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.SubResource("scale").Update(ctx, deployment("a", "x"), client.WithSubResourceBody(
			&autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "x"}}))
	},
	"create with a body of another namespace": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		return c.SubResource("binding").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
			&corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "x"}})
	},
	"through the embedded client": func(ctx context.Context, _ cluster.Cluster, c client.Client) error {
		if wrapper, ok := c.(*namespace.NamespacedClient); ok {
			return wrapper.Client.Delete(ctx, configMap("b", "x"))
		}
		return c.Delete(ctx, configMap("b", "x"))
	},
}

// snapshot returns all that an escape could change.
func snapshot(g *WithT, server *mctest.Cluster) string {
	var all []string
	for _, list := range []client.ObjectList{
		&corev1.ConfigMapList{}, &appsv1.DeploymentList{}, &corev1.PodList{}, &rbacv1.ClusterRoleList{}, &corev1.NamespaceList{}, &corev1.EventList{},
	} {
		g.Expect(server.List(list)).To(Succeed())
		text, err := json.Marshal(list)
		g.Expect(err).NotTo(HaveOccurred())
		var objects struct {
			Items []metav1.PartialObjectMetadata `json:"items"`
		}
		g.Expect(json.Unmarshal(text, &objects)).To(Succeed())
		for _, one := range objects.Items {
			if one.Namespace != "a" {
				all = append(all, fmt.Sprintf("%T %s/%s %s\n", list, one.Namespace, one.Name, one.ResourceVersion))
			}
		}
	}
	return fmt.Sprint(all)
}

func newServer(t testing.TB) *mctest.Cluster {
	t.Helper()
	server := mctest.New(t)
	for _, name := range []string{"a", "b"} {
		if err := server.Create(ns(name), configMap(name, "x"), deployment(name, "x"),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "x"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Create(role()); err != nil {
		t.Fatal(err)
	}
	return server
}

func TestEscapes(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t)
	env := start(t, server, namespace.Options{})
	engaged := env.engaged(g, "a")
	bare, closeBare := namespace.NewCluster("a", env.cluster)
	defer closeBare()
	before := snapshot(g, server)
	for name, escape := range escapes {
		for kind, cl := range map[string]cluster.Cluster{"engaged": engaged, "bare": bare} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				g := NewWithT(t)
				err := escape(t.Context(), cl, cl.GetClient())
				g.Expect(err).To(MatchError(namespace.ErrOutsideNamespace))
				g.Expect(err).To(MatchError(ContainSubstring(`"a"`)))
				g.Expect(snapshot(g, server)).To(Equal(before))
			})
		}
	}
}

// TestConfined has what is not an error, but acts in the namespace alone.
func TestConfined(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t)
	env := start(t, server, namespace.Options{})
	cl := env.engaged(g, "a")
	c, ctx := cl.GetClient(), t.Context()
	before := snapshot(g, server)

	for _, reader := range []client.Reader{c, cl.GetCache(), cl.GetAPIReader()} {
		g.Expect(namesOf(g, reader)).To(ConsistOf("a/x"))
		g.Expect(namesOf(g, reader, client.InNamespace(""))).To(ConsistOf("a/x"))
		g.Expect(namesOf(g, reader, client.InNamespace("a"))).To(ConsistOf("a/x"))
		found := &corev1.ConfigMap{}
		g.Expect(reader.Get(ctx, client.ObjectKey{Name: "x"}, found)).To(Succeed())
		g.Expect(found.Namespace).To(Equal("a"))
		g.Expect(reader.Get(ctx, client.ObjectKey{Name: "shared"}, role())).To(Succeed(), "cluster-scoped objects can be read")
		g.Expect(reader.List(ctx, &rbacv1.ClusterRoleList{})).To(Succeed())
	}
	for _, list := range []client.ObjectList{&unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}} {
		list.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		g.Expect(c.List(ctx, list)).To(Succeed())
		text, _ := json.Marshal(list)
		g.Expect(string(text)).To(And(ContainSubstring(`"namespace":"a"`), Not(ContainSubstring(`"namespace":"b"`))))
	}
	// Names that are paths.
	for _, name := range []string{"../b/x", "..", "x/../../b/x", "x%2f..", ""} {
		g.Expect(cl.GetAPIReader().Get(ctx, client.ObjectKey{Name: name}, &corev1.Secret{})).NotTo(Succeed())
		g.Expect(c.Delete(ctx, configMap("", name))).NotTo(Succeed())
		g.Expect(c.SubResource("../../../b/"+name).Get(ctx, deployment("", "x"), &autoscalingv1.Scale{})).NotTo(Succeed())
	}

	created := configMap("", "new")
	g.Expect(c.Create(ctx, created)).To(Succeed())
	g.Expect(created.Namespace).To(Equal("a"))
	g.Expect(c.Create(ctx, unstructuredConfigMap("", "newer"))).To(Succeed())
	g.Expect(c.Update(ctx, configMap("", "new"))).To(Succeed())
	g.Expect(c.Patch(ctx, metadataConfigMap("", "new"), merge)).To(Succeed())
	// The body of a patch cannot move an object.
	_ = c.Patch(ctx, configMap("", "x"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"namespace":"b"}}`)))
	g.Expect(c.Apply(ctx, corev1ac.ConfigMap("applied", ""), owner)).To(Succeed())
	g.Expect(c.Apply(ctx, client.ApplyConfigurationFromUnstructured(unstructuredConfigMap("", "applied2")), owner)).To(Succeed())
	g.Expect(c.Status().Patch(ctx, deployment("", "x"), merge)).To(Succeed())
	g.Expect(c.SubResource("status").Update(ctx, deployment("", "x"))).To(Succeed())
	g.Expect(namesOf(g, cl.GetAPIReader())).To(ConsistOf("a/x", "a/new", "a/newer", "a/applied", "a/applied2"))
	g.Expect(c.Delete(ctx, configMap("", "new"))).To(Succeed())
	g.Expect(c.DeleteAllOf(ctx, &corev1.ConfigMap{})).To(Succeed())
	g.Expect(namesOf(g, cl.GetAPIReader())).To(BeEmpty())
	g.Expect(snapshot(g, server)).To(Equal(before))
}
