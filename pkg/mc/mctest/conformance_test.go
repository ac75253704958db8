// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// A behaviour is one that both servers must have.
type behaviour struct {
	name string
	does func(t *testing.T, s *server)
}

// server is one of both.
type server struct {
	config    *rest.Config
	client    client.WithWatch
	clientset *kubernetes.Clientset
}

var testScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	return s
}()

func connect(t *testing.T, config *rest.Config) *server {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: testScheme})
	if err != nil {
		t.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &server{config: config, client: c, clientset: clientset}
}

// TestConformance runs the same tests against the server in memory and a real
// one.
func TestConformance(t *testing.T) {
	var all []behaviour
	for _, some := range [][]behaviour{
		objectBehaviours, writeBehaviours, deletionBehaviours, patchBehaviours, applyBehaviours,
		listBehaviours, watchBehaviours, cacheBehaviours, customBehaviours, identityBehaviours,
	} {
		all = append(all, some...)
	}
	run := func(t *testing.T, s *server) {
		createWidgets(t, s)
		for _, b := range all {
			t.Run(b.name, func(t *testing.T) { b.does(t, s) })
		}
	}
	t.Run("mctest", func(t *testing.T) {
		run(t, connect(t, mctest.New(t).Config()))
	})
	t.Run("kube-apiserver", func(t *testing.T) {
		run(t, connect(t, realServer(t)))
	})
}

// realServer starts a kube-apiserver with its etcd.
func realServer(t *testing.T) *rest.Config {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: not compared with a real kube-apiserver")
	}
	environment := &envtest.Environment{BinaryAssetsDirectory: assets}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("starting kube-apiserver: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stopping kube-apiserver: %v", err)
		}
	})
	config.QPS = -1
	return config
}

// namespace creates a namespace for one test.
func (s *server) namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := s.client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

func (s *server) configMap(t *testing.T, namespace, name string, labels ...string) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"key": "value"},
	}
	for i := 0; i+1 < len(labels); i += 2 {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, labels[i], labels[i+1])
	}
	if err := s.client.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	return cm
}

// next returns the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return event
	case <-time.After(20 * time.Second):
		t.Fatal("no event came")
	}
	return watch.Event{}
}

// nameOf returns the name of an event's object.
func nameOf(t *testing.T, event watch.Event) string {
	t.Helper()
	object, ok := event.Object.(metav1.Object)
	if !ok {
		t.Fatalf("%s event holds a %T: %v", event.Type, event.Object, event.Object)
	}
	return object.GetName()
}

// widgetKind is a custom kind with a status subresource; gadgetKind has none.
var (
	widgetKind = metav1.GroupVersionKind{Group: "mctest.example.org", Version: "v1", Kind: "Widget"}
	gadgetKind = metav1.GroupVersionKind{Group: "mctest.example.org", Version: "v1", Kind: "Gadget"}
)

func newCustom(kind metav1.GroupVersionKind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(kind.Group + "/" + kind.Version)
	u.SetKind(kind.Kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func definition(kind metav1.GroupVersionKind, scope apiextensionsv1.ResourceScope, status bool) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	plural := strings.ToLower(kind.Kind) + "s"
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: kind.Version, Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: &preserve,
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"spec": {Type: "object", XPreserveUnknownFields: &preserve, Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"color": {Type: "string"},
				}},
				"status": {Type: "object", XPreserveUnknownFields: &preserve, Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"conditions": {
						Type: "array", XListType: ptr.To("map"), XListMapKeys: []string{"type"},
						Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
							Type: "object", Required: []string{"type"}, XPreserveUnknownFields: &preserve,
							Properties: map[string]apiextensionsv1.JSONSchemaProps{"type": {Type: "string"}, "status": {Type: "string"}},
						}},
					},
				}},
			},
		}},
		SelectableFields: []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}},
	}
	if status {
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: scope,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
		},
	}
}

func createWidgets(t *testing.T, s *server) {
	t.Helper()
	s.define(t, definition(widgetKind, apiextensionsv1.NamespaceScoped, true), widgetKind)
	s.define(t, definition(gadgetKind, apiextensionsv1.NamespaceScoped, false), gadgetKind)
}

// define creates a CustomResourceDefinition and waits until it is served.
func (s *server) define(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, kind metav1.GroupVersionKind) {
	t.Helper()
	if err := s.client.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(kind.Group + "/" + kind.Version)
	list.SetKind(kind.Kind + "List")
	NewWithT(t).Eventually(func() error { return s.client.List(context.WithoutCancel(t.Context()), list) }).
		WithTimeout(20 * time.Second).Should(Succeed())
}
