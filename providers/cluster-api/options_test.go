// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // for servers that serve only this version
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	clusterapi "github.com/rollcall-dev/rollcall/providers/cluster-api"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
)

type unstructuredObject = unstructured.Unstructured

// unregistered is a type without a scheme.
type unregistered struct{ corev1.ConfigMap }

// newTypedCluster returns a NewCluster that calls the function with the object.
func newTypedCluster(observe func(client.Object)) func(context.Context, client.Object, *rest.Config, ...cluster.Option) (cluster.Cluster, error) {
	return func(_ context.Context, ccl client.Object, cfg *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
		observe(ccl)
		return cluster.New(cfg, opts...)
	}
}

func TestGetSecret(t *testing.T) {
	g := NewWithT(t)
	var created atomic.Pointer[client.Object]
	e := newEnv(t, func(o *clusterapi.Options) {
		o.GetSecret = func(ctx context.Context, cl client.Client, ccl client.Object) ([]byte, error) {
			if _, ok := ccl.(*clusterv1.Cluster); !ok {
				return nil, fmt.Errorf("unexpected type %T", ccl)
			}
			s := &corev1.Secret{}
			err := cl.Get(ctx, client.ObjectKey{Namespace: ccl.GetNamespace(), Name: ccl.GetName() + "-own"}, s)
			return s.Data["own"], err
		}
		o.NewCluster = newTypedCluster(func(ccl client.Object) { created.Store(&ccl) })
	})
	member := mctest.New(t)
	member.AddToken("one", "controller")
	member.AddToken("two", "controller")
	e.create("default", "eu", &rest.Config{Host: "https://not.used"})
	providertest.AwaitStatus(t, e.provider, eu, fleet.Backoff, fleet.ResolveFailed, `GetSecret of default/eu: secrets "eu-own" not found`)
	own := secret("default", "eu", nil)
	own.Name, own.Data = "eu-own", map[string][]byte{"own": providertest.Kubeconfig(t, member.ConfigFor("one"))}
	e.must(e.hub.Create(own))
	e.Works(t, eu, member)
	g.Expect(*created.Load()).To(BeAssignableToTypeOf(&clusterv1.Cluster{}))
	g.Expect((*created.Load()).GetName()).To(Equal("eu"))
	before := e.lists.Count()

	own.Data["own"] = providertest.Kubeconfig(t, member.ConfigFor("two"))
	e.must(e.hub.Update(own))
	providertest.Await(t, "the new token is used", func() bool { return e.token() == "two" })
	member.RevokeToken("one")
	own.Data["own"] = []byte("a: [")
	e.must(e.hub.Update(own))
	providertest.AwaitStatus(t, e.provider, eu, fleet.Ready, fleet.AccessUpdateFailed, "GetSecret of default/eu: is not valid YAML")
	e.Works(t, eu, member)
	g.Expect(e.Engagements(eu)).To(Equal(1))
	g.Expect(e.lists.Count()).To(Equal(before))
}

// GetSecret may need no Secrets at all.
func TestGetSecretWithoutSecrets(t *testing.T) {
	hub, member := newHub(t), mctest.New(t)
	hub.Fault(mctest.Forbidden.On("secrets"))
	e := startEnv(t, hub, func(o *clusterapi.Options) {
		o.GetSecret = func(context.Context, client.Client, client.Object) ([]byte, error) {
			return providertest.Kubeconfig(t, member.Config()), nil
		}
	})
	e.create("default", "eu", &rest.Config{})
	e.Works(t, eu, member)
}

// A function that hangs affects only its own cluster.
func TestGetSecretHangs(t *testing.T) {
	member := mctest.New(t)
	e := newEnv(t, func(o *clusterapi.Options) {
		o.GetSecret = func(ctx context.Context, _ client.Client, ccl client.Object) ([]byte, error) {
			if ccl.GetName() == "eu" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return providertest.Kubeconfig(t, member.Config()), nil
		}
	})
	e.create("default", "eu", &rest.Config{})
	e.create("default", "us", &rest.Config{})
	e.Works(t, "default/us", member)
}

func TestIsReady(t *testing.T) {
	g := NewWithT(t)
	var ready atomic.Bool
	var asked atomic.Int64
	e := newEnv(t, func(o *clusterapi.Options) {
		o.IsReady = func(_ context.Context, ccl client.Object) bool {
			asked.Add(1)
			return ready.Load() && ccl.(*clusterv1.Cluster).Name == "eu"
		}
	})
	member := mctest.New(t)
	e.create("default", "eu", member.Config())
	g.Eventually(asked.Load).Should(BeNumerically(">=", 1))
	g.Eventually(func() int { return e.log.Count("The cluster is not ready") }).Should(Equal(1))
	ready.Store(true)
	_, err := e.provider.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "eu"}})
	g.Expect(err).NotTo(HaveOccurred())
	e.Works(t, eu, member)
	ready.Store(false)
	e.update(func(u *unstructuredObject) { u.SetLabels(map[string]string{"a": "b"}) })
	e.set(providertest.Kubeconfig(t, member.Config()))
	e.Works(t, eu, member)
	g.Expect(e.Engagements(eu)).To(Equal(1))
}

func TestPredicates(t *testing.T) {
	labelled := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()["env"] == "test" })
	e := newEnv(t, func(o *clusterapi.Options) { o.Predicates = []predicate.Predicate{labelled} })
	member := mctest.New(t)
	e.create("default", "eu", member.Config())
	e.Works(t, eu, member)
	for range 2 {
		e.update(func(u *unstructuredObject) { u.SetLabels(nil) })
		e.awaitGone()
		e.set(providertest.Kubeconfig(t, member.Config())) // not considered
		e.update(func(u *unstructuredObject) { u.SetLabels(map[string]string{"env": "test"}) })
		e.Works(t, eu, member)
	}
	e.must(e.hub.Delete(object("v1beta2", "default", "eu")))
	e.update(func(u *unstructuredObject) { u.SetFinalizers(nil) })
	e.awaitGone()
}

// Changes that a predicate ignores are ignored; those of Secrets and deletions are not.
func TestPredicatesIgnoreChanges(t *testing.T) {
	g := NewWithT(t)
	hub, member, other := newHub(t), mctest.New(t), mctest.New(t)
	member.AddToken("two", "controller")
	(&env{t: t, hub: hub}).create("default", "us", other.Config())
	e := startEnv(t, hub, func(o *clusterapi.Options) {
		o.Predicates = []predicate.Predicate{predicate.GenerationChangedPredicate{}}
	})
	e.Works(t, "default/us", other) // the watch has started
	e.create("default", "eu", member.Config())
	g.Eventually(func() int { return e.log.Count("The cluster is not ready") }).Should(Equal(1), "its status is ignored")
	e.update(func(u *unstructuredObject) { u.Object["spec"] = map[string]any{"paused": false} })
	e.Works(t, eu, member)
	e.status("v1beta2", "eu", "default", initialized(condition("Paused", "False", "NotPaused")))
	e.set(providertest.Kubeconfig(t, member.ConfigFor("two")))
	providertest.Await(t, "the new token is used", func() bool { return e.token() == "two" })
	g.Expect(e.Engagements(eu)).To(Equal(1))
}

func TestObjectToWatch(t *testing.T) {
	fromData := func(_ context.Context, _ client.Client, ccl client.Object) ([]byte, error) {
		switch o := ccl.(type) {
		case *corev1.ConfigMap:
			return []byte(o.Data["kubeconfig"]), nil
		case *unstructured.Unstructured:
			text, _, err := unstructured.NestedString(o.Object, "data", "kubeconfig")
			return []byte(text), err
		}
		return nil, errors.New("another type")
	}
	untyped := &unstructured.Unstructured{}
	untyped.SetAPIVersion("v1")
	untyped.SetKind("ConfigMap")
	for name, watched := range map[string]client.Object{"typed": &corev1.ConfigMap{}, "unstructured": untyped} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t, func(o *clusterapi.Options) {
				o.ObjectToWatch, o.GetSecret, o.Namespace = watched, fromData, "kube-public"
			})
			member := mctest.New(t)
			member.AddToken("two", "controller")
			cm := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "eu"},
				Data:       map[string]string{"kubeconfig": string(providertest.Kubeconfig(t, member.Config()))},
			}
			e.must(e.hub.Create(cm))
			e.Works(t, "kube-public/eu", member)
			cm.Data["kubeconfig"] = string(providertest.Kubeconfig(t, member.ConfigFor("two")))
			e.must(e.hub.Update(cm))
			providertest.Await(t, "the new token is used", func() bool {
				cl, err := e.provider.Get(t.Context(), "kube-public/eu")
				return err == nil && cl.GetConfig().BearerToken == "two"
			})
			g.Expect(e.Engagements("kube-public/eu")).To(Equal(1))
			e.must(e.hub.Delete(cm))
			g.Eventually(func() bool { return e.isGone("kube-public/eu") }).Should(BeTrue())
		})
	}
}

// A Cluster in a version of the user's choice is read in that version.
func TestObjectToWatchIsCluster(t *testing.T) {
	untyped := object("v1beta1", "", "")
	for name, watched := range map[string]client.Object{"typed": &clusterv1beta1.Cluster{}, "unstructured": untyped} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var created atomic.Pointer[client.Object]
			e := newEnv(t, func(o *clusterapi.Options) {
				o.ObjectToWatch = watched
				o.NewCluster = newTypedCluster(func(ccl client.Object) { created.Store(&ccl) })
			})
			member := mctest.New(t)
			e.must(e.hub.Create(object("v1beta1", "default", "eu"), secret("default", "eu", providertest.Kubeconfig(t, member.Config()))))
			g.Eventually(func() int { return e.log.Count("The cluster is not ready") }).Should(Equal(1))
			e.status("v1beta1", "eu", "default", initialized())
			e.Works(t, eu, member)
			g.Expect(*created.Load()).To(BeAssignableToTypeOf(watched))
			g.Expect((*created.Load()).GetObjectKind().GroupVersionKind().Version).To(Equal("v1beta1"))
		})
	}
}
