// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi_test

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	clusterapi "github.com/rollcall-dev/rollcall/providers/cluster-api"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	gomega.SetDefaultEventuallyTimeout(mctest.Timeout)
	goleak.VerifyTestMain(m)
}

// eu is the name of the cluster of most tests.
const eu = multicluster.ClusterName("default/eu")

// env is a manager with a provider and a controller of ConfigMaps.
type env struct {
	*providertest.Recorder
	t        *testing.T
	hub      *mctest.Cluster
	provider *clusterapi.Provider
	mgr      mcmanager.Manager
	log      providertest.Log
	lists    providertest.Lists
	stop     func()
}

// crd returns the definition of Cluster that serves these versions.
func crd(served ...string) *apiextensionsv1.CustomResourceDefinition {
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clusters.cluster.x-k8s.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "cluster.x-k8s.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Cluster", ListKind: "ClusterList", Plural: "clusters", Singular: "cluster"},
		},
	}
	for _, version := range []string{"v1beta1", "v1beta2"} {
		v := apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Storage: version == "v1beta2",
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: ptr.To(true),
			}},
		}
		for _, s := range served {
			v.Served = v.Served || s == version
		}
		definition.Spec.Versions = append(definition.Spec.Versions, v)
	}
	return definition
}

func newHub(t *testing.T) *mctest.Cluster {
	t.Helper()
	return mctest.New(t, mctest.Options{Name: "hub", Objects: []client.Object{crd("v1beta1", "v1beta2")}})
}

// newEnv starts a manager.
func newEnv(t *testing.T, change ...func(*clusterapi.Options)) *env {
	t.Helper()
	return startEnv(t, newHub(t), change...)
}

// startEnv starts a manager with a management cluster.
func startEnv(t *testing.T, hub *mctest.Cluster, change ...func(*clusterapi.Options)) *env {
	t.Helper()
	e := &env{t: t, hub: hub}
	options := clusterapi.Options{Connection: providertest.Quick()}
	options.Connection.RESTOptions = append(options.Connection.RESTOptions, e.lists.Option)
	for _, c := range change {
		c(&options)
	}
	e.provider = clusterapi.New(options)
	e.newManager()
	e.stop = mctest.StartManager(t, e.mgr)
	return e
}

func (e *env) newManager() {
	e.t.Helper()
	options := mctest.ManagerOptions()
	options.Logger = e.log.Logger()
	var err error
	if e.mgr, err = mcmanager.New(e.hub.Config(), e.provider, options); err != nil {
		e.t.Fatal(err)
	}
	e.Recorder = providertest.Record(e.t, e.mgr)
}

// object returns a Cluster without a status.
func object(version, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetAPIVersion("cluster.x-k8s.io/" + version)
	u.SetKind("Cluster")
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// secret returns the Secret of a Cluster.
func secret(namespace, name string, content []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-kubeconfig", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": name}},
		Data:       map[string][]byte{"value": content},
	}
}

// initialized is the status of a Cluster with a control plane, in both versions.
func initialized(conditions ...any) map[string]any {
	return map[string]any{
		"initialization":    map[string]any{"controlPlaneInitialized": true},
		"controlPlaneReady": true, "infrastructureReady": true, "conditions": conditions,
	}
}

// condition returns a condition of a Cluster.
func condition(kind, status, reason string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// create creates a Cluster that is ready, and its Secret.
func (e *env) create(namespace, name string, config *rest.Config) {
	e.t.Helper()
	u := object("v1beta2", namespace, name)
	u.SetLabels(map[string]string{"env": "test"})
	u.SetFinalizers([]string{"cluster.cluster.x-k8s.io"})
	e.must(e.hub.Create(u, secret(namespace, name, providertest.Kubeconfig(e.t, config))))
	e.status("v1beta2", name, namespace, initialized())
}

// status replaces the status of a Cluster.
func (e *env) status(version, name, namespace string, status map[string]any) {
	e.t.Helper()
	e.change(version, namespace, name, e.hub.UpdateStatus, func(u *unstructured.Unstructured) { u.Object["status"] = status })
}

func (e *env) change(version, namespace, name string, update func(client.Object) error, change func(*unstructured.Unstructured)) {
	e.t.Helper()
	u := object(version, namespace, name)
	e.must(e.hub.Get(client.ObjectKeyFromObject(u), u))
	change(u)
	e.must(update(u))
}

// update changes the Cluster eu.
func (e *env) update(change func(*unstructured.Unstructured)) {
	e.t.Helper()
	e.change("v1beta2", "default", "eu", e.hub.Update, change)
}

// updateSecret changes the Secret of the Cluster eu.
func (e *env) updateSecret(change func(*corev1.Secret)) {
	e.t.Helper()
	s := secret("default", "eu", nil)
	e.must(e.hub.Get(client.ObjectKeyFromObject(s), s))
	change(s)
	e.must(e.hub.Update(s))
}

// set replaces the kubeconfig of the Cluster eu.
func (e *env) set(content []byte) {
	e.t.Helper()
	e.updateSecret(func(s *corev1.Secret) { s.Data["value"] = content })
}

// isGone reports whether the provider does not have the cluster.
func (e *env) isGone(name multicluster.ClusterName) bool {
	return providertest.StatusOf(e.provider, name).Name == ""
}

// awaitGone waits until the provider does not have the cluster eu.
func (e *env) awaitGone() {
	e.t.Helper()
	providertest.Await(e.t, "the cluster is gone", func() bool { return e.isGone(eu) })
}

// token returns the token that the cluster eu is connected with.
func (e *env) token() string {
	cl, err := e.provider.Get(e.t.Context(), eu)
	if err != nil {
		return ""
	}
	return cl.GetConfig().BearerToken
}

func clientKey(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

// execUser returns a user with a command.
func execUser(command string) *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: command, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
}
