// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// lean returns the transforms that the options give Pods and all else.
func lean(opts ...cluster.Option) (ofPods, ofOthers toolscache.TransformFunc) {
	o := &cluster.Options{}
	for _, opt := range opts {
		opt(o)
	}
	ofPods = o.Cache.DefaultTransform
	for object, of := range o.Cache.ByObject {
		if _, ok := object.(*corev1.Pod); ok && of.Transform != nil {
			ofPods = of.Transform
		}
	}
	return ofPods, o.Cache.DefaultTransform
}

func fullPod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "u", ResourceVersion: "7", Labels: map[string]string{"k": "v"}, Finalizers: []string{"f"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec:   corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func TestALeanCacheLeavesOut(t *testing.T) {
	marked := func(object any) (any, error) {
		object.(client.Object).SetAnnotations(map[string]string{"marked": "yes"})
		return object, nil
	}
	onlyMetadata := fullPod()
	onlyMetadata.ManagedFields, onlyMetadata.Spec, onlyMetadata.Status = nil, corev1.PodSpec{}, corev1.PodStatus{}
	slim := fullPod()
	slim.ManagedFields = nil
	markedSlim := slim.DeepCopy()
	markedSlim.Annotations = map[string]string{"marked": "yes"}
	markedMetadata := onlyMetadata.DeepCopy()
	markedMetadata.Annotations = map[string]string{"marked": "yes"}
	byObject := map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: marked}}

	for _, tc := range []struct {
		name             string
		options          []cluster.Option
		ofPods, ofOthers *corev1.Pod
	}{
		{"managed fields, of all", []cluster.Option{fleet.LeanCache()}, slim, slim},
		{"content, of the kinds that are named", []cluster.Option{fleet.LeanCache(&corev1.Pod{})}, onlyMetadata, slim},
		{"after the default transform there is", []cluster.Option{
			func(o *cluster.Options) { o.Cache.DefaultTransform = marked }, fleet.LeanCache(),
		}, markedSlim, markedSlim},
		{"after the transform of a kind there is", []cluster.Option{
			func(o *cluster.Options) { o.Cache.ByObject = byObject }, fleet.LeanCache(),
		}, markedSlim, slim},
		{"content after the transform of a kind there is", []cluster.Option{
			func(o *cluster.Options) { o.Cache.ByObject = byObject }, fleet.LeanCache(&corev1.Pod{}),
		}, markedMetadata, slim},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			ofPods, ofOthers := lean(tc.options...)
			g.Expect(ofPods(fullPod())).To(Equal(tc.ofPods))
			g.Expect(ofOthers(fullPod())).To(Equal(tc.ofOthers))
		})
	}
	NewWithT(t).Expect(byObject[firstKey(byObject)].Transform(fullPod())).To(HaveField("Spec.NodeName", "n"), "what clusters share is not changed")
}

func firstKey(m map[client.Object]cache.ByObject) client.Object {
	for key := range m {
		return key
	}
	return nil
}

func TestALeanCacheTakesAllFormsOfObjects(t *testing.T) {
	g := NewWithT(t)
	transform, _ := lean(fleet.LeanCache(&corev1.Pod{}))
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{},
		"metadata": map[string]any{"name": "a", "managedFields": []any{}},
	}}
	g.Expect(transform(u)).To(HaveField("Object", Equal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"},
	})))
	partial := &metav1.PartialObjectMetadata{ObjectMeta: fullPod().ObjectMeta}
	g.Expect(transform(partial)).To(And(HaveField("Name", "a"), HaveField("ManagedFields", BeNil())))
	missed := toolscache.DeletedFinalStateUnknown{Key: "a"}
	g.Expect(transform(missed)).To(Equal(missed))
}

// held returns what a cache with these options has of ConfigMaps, as
// "namespace/name mark", with data and managed fields where these are left, in
// order, and of a Namespace.
func held(t *testing.T, c *mctest.Cluster, opts ...cluster.Option) []string {
	t.Helper()
	g := NewWithT(t)
	cl, err := cluster.New(c.Config(), opts...)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cl.Start(ctx) }()
	defer func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	}()
	g.Expect(cl.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	var all []string
	configMaps := &corev1.ConfigMapList{}
	g.Expect(cl.GetCache().List(ctx, configMaps)).To(Succeed())
	for i := range configMaps.Items {
		cm := &configMaps.Items[i]
		line := fmt.Sprintf("%s/%s %s%s", cm.Namespace, cm.Name, cm.Annotations["marked"], cm.Data["key"])
		if len(cm.ManagedFields) > 0 {
			line += " managed"
		}
		all = append(all, line)
	}
	namespace := &corev1.Namespace{}
	g.Expect(cl.GetCache().Get(ctx, client.ObjectKey{Name: "default"}, namespace)).To(Succeed())
	all = append(all, "default "+namespace.Annotations["marked"])
	slices.Sort(all)
	return all
}

func TestALeanCacheKeepsTheTransformsOfControllerRuntime(t *testing.T) {
	mark := func(text string) toolscache.TransformFunc {
		return func(object any) (any, error) {
			o := object.(client.Object)
			if marks := o.GetAnnotations()["marked"]; !strings.Contains(marks, text) { // client-go may transform twice
				o.SetAnnotations(map[string]string{"marked": marks + text})
			}
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
			return object, nil
		}
	}
	inNamespaces := map[string]cache.Config{"default": {Transform: mark("namespace")}, "kube-public": {}}
	elsewhere := map[string]cache.Config{"default": {}, cache.AllNamespaces: {Transform: mark("elsewhere")}}
	of := func(kind cache.ByObject) map[client.Object]cache.ByObject {
		return map[client.Object]cache.ByObject{&corev1.ConfigMap{}: kind}
	}
	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "a"}
	}
	var objects []client.Object
	for _, namespace := range []string{"default", "kube-public", "kube-system"} {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: meta(namespace), Data: map[string]string{"key": " data"}})
	}
	c := mctest.New(t, mctest.Options{Objects: objects})

	for _, tc := range []struct {
		name    string
		options cache.Options
		want    []string
	}{
		{"for all", cache.Options{}, []string{"default all", "default/a all", "kube-public/a all", "kube-system/a all"}},
		{"of a kind", cache.Options{ByObject: of(cache.ByObject{Transform: mark("kind")})},
			[]string{"default all", "default/a kind", "kube-public/a kind", "kube-system/a kind"}},
		{"of namespaces of a kind", cache.Options{ByObject: of(cache.ByObject{Transform: mark("kind"), Namespaces: inNamespaces})},
			[]string{"default all", "default/a namespace", "kube-public/a kind"}},
		{"of namespaces of a kind without one", cache.Options{ByObject: of(cache.ByObject{Namespaces: inNamespaces})},
			[]string{"default all", "default/a namespace", "kube-public/a all"}},
		{"of namespaces", cache.Options{DefaultNamespaces: inNamespaces},
			[]string{"default all", "default/a namespace", "kube-public/a all"}},
		{"of namespaces, and of a kind", cache.Options{DefaultNamespaces: inNamespaces, ByObject: of(cache.ByObject{Transform: mark("kind")})},
			[]string{"default all", "default/a namespace", "kube-public/a kind"}},
		{"of namespaces, for a kind that has its own", cache.Options{DefaultNamespaces: inNamespaces, ByObject: of(cache.ByObject{
			Namespaces: map[string]cache.Config{"default": {}, "kube-system": {}},
		})}, []string{"default all", "default/a namespace", "kube-system/a all"}},
		{"of all other namespaces", cache.Options{DefaultNamespaces: elsewhere},
			[]string{"default all", "default/a all", "kube-public/a elsewhere", "kube-system/a elsewhere"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			tc.options.DefaultTransform = mark("all")
			given := func(o *cluster.Options) { o.Cache = tc.options }
			g.Expect(held(t, c, given)).To(Equal(with(" data managed", tc.want)), "by controller-runtime alone")
			g.Expect(held(t, c, given, fleet.LeanCache())).To(Equal(with(" data", tc.want)))
			g.Expect(held(t, c, given, fleet.LeanCache(&corev1.ConfigMap{}, &corev1.Namespace{}))).To(Equal(tc.want))
		})
	}
}

// with adds what the ConfigMaps have besides.
func with(besides string, held []string) []string {
	held = slices.Clone(held)
	for i, line := range held {
		if strings.Contains(line, "/") {
			held[i] += besides
		}
	}
	return held
}
