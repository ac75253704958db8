// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

func TestScopeOfManager(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	fleetOnly := map[string]cache.Config{"kube-public": {}}
	byObject := func(scope cache.ByObject) func(*mcmanager.Options) {
		return func(o *mcmanager.Options) {
			o.Scheme = scheme
			o.Cache.ByObject = map[client.Object]cache.ByObject{&inventory.Profile{}: scope}
		}
	}
	for _, tc := range []struct {
		name     string
		manager  func(*mcmanager.Options)
		provider clusterinventoryapi.Options
		want     string
	}{
		{"default namespaces", func(o *mcmanager.Options) { o.Cache.DefaultNamespaces = fleetOnly }, clusterinventoryapi.Options{}, "kube-public/in"},
		{"namespaces of the kind", byObject(cache.ByObject{Namespaces: fleetOnly}), clusterinventoryapi.Options{}, "kube-public/in"},
		{
			"labels of the kind", byObject(cache.ByObject{Label: labels.SelectorFromSet(labels.Set{"name": "in"})}),
			clusterinventoryapi.Options{}, "kube-public/in",
		},
		{"a cache of the program", func(o *mcmanager.Options) {
			o.NewCache = func(config *rest.Config, opts cache.Options) (cache.Cache, error) {
				opts.DefaultNamespaces = fleetOnly
				return cache.New(config, opts)
			}
		}, clusterinventoryapi.Options{}, "kube-public/in"},
		{
			"all namespaces, set explicitly", func(o *mcmanager.Options) { o.Cache.DefaultNamespaces = fleetOnly },
			clusterinventoryapi.Options{Namespaces: []string{metav1.NamespaceAll}}, "default/out kube-public/in",
		},
	} {
		for _, existing := range []bool{false, true} {
			t.Run(tc.name+map[bool]string{true: ", existing manager"}[existing], func(t *testing.T) {
				g := NewWithT(t)
				home := mctest.New(t, mctest.Options{Scheme: scheme})
				// Sent first, as it is first in the order of precedence.
				createHealthy(g, home, &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "out"}})
				createHealthy(g, home, &inventory.Profile{ObjectMeta: metav1.ObjectMeta{
					Namespace: "kube-public", Name: "in", Labels: map[string]string{"name": "in"},
				}})
				tc.provider.Credentials = method(func(context.Context, *inventory.Profile) (*credentials.Access, error) {
					return nil, errors.New("no")
				})
				provider, err := clusterinventoryapi.New(tc.provider)
				g.Expect(err).NotTo(HaveOccurred())
				options := mctest.ManagerOptions()
				tc.manager(&options)
				var mgr mcmanager.Manager
				if existing {
					local, err := manager.New(home.Config(), options)
					g.Expect(err).NotTo(HaveOccurred())
					mgr, err = mcmanager.WithMultiCluster(local, provider)
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					mgr, err = mcmanager.New(home.Config(), provider, options)
					g.Expect(err).NotTo(HaveOccurred())
				}
				mctest.StartManager(t, mgr)
				f := &fixture{Provider: provider}
				g.Eventually(f.names).WithTimeout(timeout).Should(ContainSubstring("kube-public/in"))
				g.Expect(f.names()).To(Equal(tc.want))
			})
		}
	}
}

func TestSecretsAreReadWithNewClient(t *testing.T) {
	g := NewWithT(t)
	home, member, provider := secretHub(t), mctest.New(t), secretProvider(t)
	g.Expect(home.Create(secretWith(g, member.Config()))).To(Succeed())
	options, lists := mctest.ManagerOptions(), &atomic.Int32{}
	options.NewClient = func(config *rest.Config, opts client.Options) (client.Client, error) {
		cl, err := client.New(config, opts)
		return countingClient{cl, lists}, err
	}
	mgr, err := mcmanager.New(home.Config(), provider, options)
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)
	g.Eventually(stateOf(provider)).WithTimeout(timeout).Should(Equal(fleet.Ready))
	g.Expect(lists.Load()).NotTo(BeZero())
}

// countingClient counts lists of Secrets.
type countingClient struct {
	client.Client
	lists *atomic.Int32
}

func (c countingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*corev1.SecretList); ok {
		c.lists.Add(1)
	}
	return c.Client.List(ctx, list, opts...)
}
