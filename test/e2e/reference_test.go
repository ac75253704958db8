// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/clients"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// taskDefinition defines an object with a clusterProfileRef.
func taskDefinition() *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "tasks.example.com"}}
	d.Spec.Group, d.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "tasks", Singular: "task", Kind: "Task", ListKind: "TaskList"}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
		},
	}}
	return d
}

// referenceOf returns the clusterProfileRef of a task in the hub.
func (p *controlPlanes) referenceOf(t *testing.T, task string) inventory.Key {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("example.com/v1")
	object.SetKind("Task")
	if err := p.hub.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: task}, object); err != nil {
		t.Fatal(err)
	}
	namespace, _, _ := unstructured.NestedString(object.Object, "spec", "clusterProfileRef", "namespace")
	name, _, _ := unstructured.NestedString(object.Object, "spec", "clusterProfileRef", "name")
	return inventory.Key{Namespace: namespace, Name: name}
}

func TestNamedReference(t *testing.T) {
	g := NewWithT(t)
	e := &hubEnv{controlPlanes: realPlanes(t), t: t}
	_, err := envtest.InstallCRDs(e.hub.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{taskDefinition()}})
	g.Expect(err).NotTo(HaveOccurred())
	task := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Task",
		"metadata": map[string]any{"namespace": "default", "name": "east"},
		"spec": map[string]any{"clusterProfileRef": map[string]any{
			"namespace": realfleet.FleetNamespace, "name": e.east.Name,
		}},
	}}
	g.Expect(e.hub.Client.Create(t.Context(), task)).To(Succeed())
	reference := e.referenceOf(t, "east")

	hubToken, err := e.hub.IssueToken(t.Context(), e.hub.ControllerAccount, nil)
	g.Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(e.hub.Config)
	config.BearerToken = hubToken
	source, err := hub.New(config, hub.Options{Namespaces: []string{realfleet.FleetNamespace}})
	g.Expect(err).NotTo(HaveOccurred())
	resolver, err := e.newResolver()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		resolver.Close()
		checkNotLogged(t, hubToken)
		checkNotLogged(t, e.east.Token)
	})
	members, err := clients.New(clients.Options{Source: source, Credentials: resolver, IdleTimeout: 2 * time.Second})
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, members)
	get := func() error {
		_, err := members.Client(t.Context(), reference)
		return err
	}
	g.Eventually(get).Should(MatchError(clients.ErrProfileNotFound), "the inventory is listed and has no profile yet")

	e.add(e.east)
	g.Eventually(get).Should(Succeed())
	member, err := members.Client(t.Context(), reference)
	g.Expect(err).NotTo(HaveOccurred())
	read := func() error { return member.List(t.Context(), &corev1.ConfigMapList{}) }
	g.Expect(read()).To(Succeed())
	g.Expect(member.List(t.Context(), &corev1.SecretList{})).To(Satisfy(apierrors.IsForbidden), "its token may read only ConfigMaps")

	old, anchor := e.east.Token, e.east.BoundSecret
	g.Expect(e.east.ReplaceToken(t.Context())).To(Succeed())
	g.Expect(e.hub.PutToken(t.Context(), e.east)).To(Succeed())
	g.Expect(e.east.Client.Delete(t.Context(), anchor)).To(Succeed())
	g.Eventually(func() (int, error) { return e.east.Status(t.Context(), old) }).Should(Equal(http.StatusUnauthorized), "the old token is revoked")
	g.Expect(read()).To(Succeed(), "the token was rotated under the client")
	checkNotLogged(t, old)

	watching, err := member.Watch(t.Context(), &corev1.ConfigMapList{})
	g.Expect(err).NotTo(HaveOccurred())
	e.create(e.east, "watched")
	g.Eventually(watching.ResultChan()).Should(Receive(HaveField("Object.ObjectMeta.Name", "watched")))
	watching.Stop()

	e.remove(e.east)
	g.Eventually(read).Should(MatchError(clients.ErrProfileNotFound))
}
