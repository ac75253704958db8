// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	gomega.SetDefaultEventuallyTimeout(mctest.Timeout)
	goleak.VerifyTestMain(m)
}

// env is a manager with a provider and a controller of ConfigMaps.
type env struct {
	*providertest.Recorder
	t        *testing.T
	hub      *mctest.Cluster
	provider *kubeconfig.Provider
	mgr      mcmanager.Manager
	log      providertest.Log
	lists    providertest.Lists
	stop     func()
}

// newEnv starts a manager whose provider reads Secrets in the namespace "default".
func newEnv(t *testing.T, change ...func(*kubeconfig.Options)) *env {
	t.Helper()
	e := &env{t: t, hub: mctest.New(t, mctest.Options{Name: "hub"})}
	options := kubeconfig.Options{Namespace: "default", Connection: providertest.Quick()}
	options.RESTOptions = append(options.RESTOptions, e.lists.Option)
	for _, c := range change {
		c(&options)
	}
	e.provider = kubeconfig.New(options)
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

// secret returns a Secret with the label and a kubeconfig.
func secret(name string, content []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{kubeconfig.DefaultKubeconfigSecretLabel: "true"}},
		Data:       map[string][]byte{kubeconfig.DefaultKubeconfigSecretKey: content},
	}
}

// create creates the Secret of a cluster.
func (e *env) create(name string, config *rest.Config) {
	e.t.Helper()
	if err := e.hub.Create(secret(name, providertest.Kubeconfig(e.t, config))); err != nil {
		e.t.Fatal(err)
	}
}

// update changes the Secret of a cluster.
func (e *env) update(name string, change func(*corev1.Secret)) {
	e.t.Helper()
	s := secret(name, nil)
	if err := e.hub.Get(clientKey(s), s); err != nil {
		e.t.Fatal(err)
	}
	change(s)
	if err := e.hub.Update(s); err != nil {
		e.t.Fatal(err)
	}
}

// set replaces the kubeconfig of a cluster.
func (e *env) set(name string, content []byte) {
	e.t.Helper()
	e.update(name, func(s *corev1.Secret) { s.Data[kubeconfig.DefaultKubeconfigSecretKey] = content })
}

// isGone reports whether the provider does not have the cluster.
func (e *env) isGone(name string) bool {
	for _, status := range e.provider.Status() {
		if string(status.Name) == name {
			return false
		}
	}
	return true
}
