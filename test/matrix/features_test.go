// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// feature is something that happens to a cluster. When begin returns, it has had
// its effect, which lasts until end. After that the cluster is well.
type feature struct {
	name  string
	begin func(m *member) (end func() error, err error)
}

// features are all but the shutdown of the fleet.
var features = []feature{
	{"swap the endpoint", swapEndpoint},
	{"swap the credential", swapCredential},
	{"rotate the token", rotateToken},
	{"rotate the certificates", rotateCertificates},
	{"another profile takes over", replaceProfile},
	{"degrade and recover", degrade},
	{"missing kind", missingKind},
	{"forbidden kind", forbiddenKind},
	{"add an index", addIndex},
	{"flip the selection", flipSelection},
	{"hung plugin", hungPlugin},
	{"refused credential", refusedCredential},
}

func nothing() error { return nil }

// swapEndpoint moves the cluster to another address.
func swapEndpoint(m *member) (func() error, error) {
	m.Move()
	m.putProfile()
	return nothing, m.checkUnharmed()
}

// swapCredential lets the profile name another account.
func swapCredential(m *member) (func() error, error) {
	earlier := m.env.accounts.get(m.key())
	m.account = m.next("account")
	m.issueToken()
	m.putProfile()
	if err := m.awaitReady(); err != nil {
		return nothing, err
	}
	if earlier.Token != "" {
		m.RevokeToken(earlier.Token)
	}
	return nothing, m.checkUnharmed()
}

// replaceProfile adds a second profile, with an account of its own, and removes the
// first one.
func replaceProfile(m *member) (func() error, error) {
	earlier, first := m.env.accounts.get(m.key()), m.profile
	m.profile, m.account = m.next("profile"), m.next("account")
	m.issueToken()
	m.putProfile()
	if err := m.awaitDuplicate(); err != nil {
		return nothing, err
	}
	m.removeProfile(first)
	if err := m.awaitReady(); err != nil {
		return nothing, err
	}
	if earlier.Token != "" {
		m.RevokeToken(earlier.Token)
	}
	return nothing, m.checkUnharmed()
}

// rotateToken replaces the token, which the cluster then rejects.
func rotateToken(m *member) (func() error, error) {
	if m.env.accounts.get(m.key()).Token == "" {
		if _, err := swapCredential(m); err != nil {
			return nothing, err
		}
	}
	revokeEarlier := m.issueToken()
	revokeEarlier()
	m.CloseConnections()
	return nothing, m.checkUnharmed()
}

// rotateCertificates replaces the certificate authority, the certificate of the
// server, and the client's.
func rotateCertificates(m *member) (func() error, error) {
	m.RotateCA()
	m.issueCertificate()
	m.putProfile()
	return nothing, m.checkUnharmed()
}

// degrade makes the cluster fail.
func degrade(m *member) (func() error, error) {
	faults := []mctest.Fault{mctest.Hang, mctest.Freeze, mctest.Refuse, mctest.Reset, mctest.Unavailable}
	i := m.random.IntN(len(faults))
	lift := m.Fault(faults[i])
	m.mayList = true
	during := ""
	end := func() error {
		lift()
		return m.awaitReconciled("ConfigMap", during)
	}
	reason := fleet.Unreachable
	if i == len(faults)-1 {
		reason = fleet.UnexpectedResponse
	}
	if err := m.awaitDegraded(reason); err != nil {
		return end, fmt.Errorf("fault %d: %w", i, err)
	}
	var err error
	if during, err = m.create("ConfigMap"); err != nil {
		return end, err
	}
	c, err := m.client()
	if err != nil {
		return end, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), mctest.Timeout)
	defer cancel()
	cached := &corev1.ConfigMapList{}
	if err := c.List(ctx, cached); err != nil || len(cached.Items) == 0 {
		return end, fmt.Errorf("%d objects are in the cache of the degraded cluster: %w", len(cached.Items), err)
	}
	return end, nil
}

// missingKind engages the cluster while it has no widgets.
func missingKind(m *member) (func() error, error) {
	if err := m.deselect(); err != nil {
		return nothing, err
	}
	if err := client.IgnoreNotFound(m.Delete(widgets())); err != nil {
		return nothing, err
	}
	m.setSelected(true)
	end := func() error {
		if err := m.Create(widgets()); err != nil {
			return err
		}
		return m.checkReconciles("Widget")
	}
	return end, errors.Join(m.checkUnharmed(), m.awaitUnsynced("Widget", "no matches for kind"))
}

// forbiddenKind engages the cluster while it forbids Secrets.
func forbiddenKind(m *member) (func() error, error) {
	if err := m.deselect(); err != nil {
		return nothing, err
	}
	lift := m.Fault(mctest.Forbidden.On("secrets"))
	m.behind = "secrets"
	m.setSelected(true)
	end := func() error {
		lift()
		m.behind = ""
		return m.checkReconciles("Secret")
	}
	return end, errors.Join(m.checkUnharmed(), m.awaitUnsynced("Secret", "forbidden"))
}

// awaitUnsynced waits until the controller of the kind shows why it does not
// reconcile.
func (m *member) awaitUnsynced(kind, text string) error {
	return eventually(func() error {
		if s := m.controllerStatus(kind); s.UnsyncedSources != 1 || !strings.Contains(s.LastError, text) {
			return fmt.Errorf("status of the controller of %s is %v, want the error %q", kind, s, text)
		}
		return nil
	})
}

// addIndex adds an index to all clusters, and uses it in this one. The others use
// it at the end of the round.
func addIndex(m *member) (func() error, error) {
	i, err := m.env.indexes.take()
	if err != nil {
		return nothing, err
	}
	err = m.env.fleet.IndexField(context.Background(), i.object, indexField, func(o client.Object) []string {
		return []string{o.GetLabels()[indexField]}
	})
	if err != nil {
		return nothing, err
	}
	if err := m.checkIndex(i); err != nil {
		return nothing, err
	}
	m.env.indexes.add(i)
	return func() error { return m.checkIndex(i) }, m.checkUnharmed()
}

// checkIndex creates an object and finds it by the index.
func (m *member) checkIndex(i index) error {
	object := i.object.DeepCopyObject().(client.Object)
	object.SetNamespace("default")
	object.SetName(m.next("indexed"))
	object.SetLabels(map[string]string{indexField: object.GetName()})
	if err := m.Create(object); err != nil {
		return err
	}
	return eventually(func() error {
		c, err := m.client()
		if err != nil {
			return err
		}
		list := i.list.DeepCopyObject().(client.ObjectList)
		if err := c.List(context.Background(), list, client.MatchingFields{indexField: object.GetName()}); err != nil {
			return err
		}
		if n := meta.LenList(list); n != 1 {
			return fmt.Errorf("the index of %s finds %d objects, want 1", i.resource, n)
		}
		return nil
	})
}

// flipSelection removes the cluster from the selection for a while.
func flipSelection(m *member) (func() error, error) {
	end := func() error {
		m.setSelected(true)
		return nil
	}
	return end, m.deselect()
}

// hungPlugin rejects the credential while the plugin hangs.
func hungPlugin(m *member) (func() error, error) {
	m.env.accounts.setHangs(m.key(), true)
	m.mayList = true
	lift := m.Fault(mctest.Unauthorized)
	m.CloseConnections()
	end := func() error {
		m.env.accounts.setHangs(m.key(), false)
		lift()
		return nil
	}
	return end, m.awaitDegraded(fleet.ResolveFailed, fleet.Unauthorized)
}

// refusedCredential rejects the credential, and the plugin has no other.
func refusedCredential(m *member) (func() error, error) {
	m.mayList = true
	lift := m.Fault(mctest.Unauthorized)
	if m.random.IntN(2) == 0 {
		m.CloseConnections()
	}
	end := func() error {
		lift()
		return nil
	}
	return end, m.awaitDegraded(fleet.Unauthorized)
}

var widgetKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}

func widget(name string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(widgetKind)
	w.SetNamespace("default")
	w.SetName(name)
	return w
}

// widgets returns the definition of the kind.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.org"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgetKind.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget", ListKind: "WidgetList", Plural: "widgets", Singular: "widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: widgetKind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}
