// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func newCache(t *testing.T, c *mctest.Cluster, options cache.Options) cache.Cache {
	t.Helper()
	informers, err := cache.New(c.Config(), options)
	if err != nil {
		t.Fatal(err)
	}
	return informers
}

func inNamespace(namespace, name, version string) *inventory.Profile {
	p := profile(name, version)
	p.Namespace = namespace
	return p
}

func TestScopeOfCache(t *testing.T) {
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ClusterProfile"))
	typed := runtime.NewScheme()
	NewWithT(t).Expect(v1alpha1.AddToScheme(typed)).To(Succeed())
	for _, scheme := range []struct {
		name    string
		scheme  *runtime.Scheme
		example client.Object
	}{
		{"in the scheme", typed, &inventory.Profile{}},
		{"not in the scheme", runtime.NewScheme(), untyped},
	} {
		byObject := func(scope cache.ByObject) cache.Options {
			return cache.Options{ByObject: map[client.Object]cache.ByObject{scheme.example: scope}}
		}
		for _, tc := range []struct {
			name    string
			options cache.Options
			want    string
		}{
			{"no scope", cache.Options{}, "default/a=1 default/b=2 kube-public/c=1"},
			{"default namespaces", cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}}, "default/a=1 default/b=2"},
			{"two namespaces by kind", byObject(cache.ByObject{Namespaces: map[string]cache.Config{
				"kube-public": {}, "default": {LabelSelector: labels.SelectorFromSet(labels.Set{"version": "2"})},
			}}), "default/b=2 kube-public/c=1"},
			{"labels by kind", byObject(cache.ByObject{
				Label: labels.SelectorFromSet(labels.Set{"version": "1"}),
			}), "default/a=1 kube-public/c=1"},
		} {
			t.Run(scheme.name+", "+tc.name, func(t *testing.T) {
				g := NewWithT(t)
				c := newHub(t)
				g.Expect(c.Create(profile("a", "1"), profile("b", "2"), inNamespace("kube-public", "c", "1"))).To(Succeed())
				tc.options.Scheme = scheme.scheme
				informers := newCache(t, c, tc.options)
				mctest.StartManager(t, informers)
				sink := run(t, c, hub.Options{Cache: informers})
				g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
				g.Expect(sink.content()).To(Equal(tc.want))

				g.Expect(c.Update(profile("a", "3"))).To(Succeed())
				g.Expect(c.Delete(profile("b", ""))).To(Succeed())
				g.Expect(c.Create(inNamespace("kube-public", "d", "1"))).To(Succeed())
				want := map[string]string{
					"no scope":               "default/a=3 kube-public/c=1 kube-public/d=1",
					"default namespaces":     "default/a=3",
					"two namespaces by kind": "kube-public/c=1 kube-public/d=1",
					"labels by kind":         "kube-public/c=1 kube-public/d=1", // a has left the scope
				}[tc.name]
				g.Eventually(sink.content).WithTimeout(timeout).Should(Equal(want))
			})
		}
	}
}

func TestExplicitOptionsReplaceCache(t *testing.T) {
	for name, options := range map[string]hub.Options{
		"namespace":      {Namespace: "kube-public"},
		"namespaces":     {Namespaces: []string{"kube-public"}},
		"label selector": {Namespaces: everywhere, LabelSelector: labels.SelectorFromSet(labels.Set{"version": "1"})},
		"field selector": {Namespaces: everywhere, FieldSelector: fields.OneTermEqualSelector("metadata.name", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newHub(t)
			g.Expect(c.Create(inNamespace("kube-public", "a", "1"))).To(Succeed())
			options.Cache = newCache(t, c, cache.Options{}) // not started
			sink := run(t, c, options)
			g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("kube-public/a=1"))
		})
	}
}

func TestOutageOfCache(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	g.Expect(c.Create(profile("kept", "1"), profile("deleted", "1"))).To(Succeed())
	informers := newCache(t, c, cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}})
	mctest.StartManager(t, informers)
	sink := run(t, c, hub.Options{Cache: informers})
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())

	lift := c.Fault(mctest.Forbidden.On("clusterprofiles"))
	c.ResetRequests()
	g.Expect(c.Delete(profile("deleted", ""))).To(Succeed())
	c.Compact() // so that the watch cannot resume
	c.CloseConnections()
	g.Eventually(func() int { return c.Requests("", "clusterprofiles") }).WithTimeout(timeout).ShouldNot(BeZero())
	lift()
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/kept=1"))
}

func TestCacheWaitsForAPI(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	logs := &logBuffer{}
	informers := newCache(t, c, cache.Options{})
	mctest.StartManager(t, informers)
	sink := run(t, c, hub.Options{Cache: informers}, logs)
	g.Eventually(logs.text).WithTimeout(timeout).Should(ContainSubstring("does not serve ClusterProfiles"))
	g.Expect(sink.synced()).To(BeFalse())
	g.Expect(informers.WaitForCacheSync(t.Context())).To(BeTrue(), "others do not wait for the API")

	g.Expect(c.Create(crd("ClusterProfile"))).To(Succeed())
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	g.Expect(logs.text()).To(ContainSubstring("Hub can be read again"))
}

func TestSyncedAfterCache(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	g.Expect(c.Create(profile("a", "1"))).To(Succeed())
	informers := newCache(t, c, cache.Options{})
	sink := run(t, c, hub.Options{Cache: informers})
	g.Eventually(func() int { return c.OpenWatches("namespaces") }).WithTimeout(timeout).Should(Equal(1))
	g.Expect(sink.synced()).To(BeFalse())
	stop := mctest.StartManager(t, informers)
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	g.Expect(sink.content()).To(Equal("default/a=1"))
	stop() // before the source
	g.Expect(sink.content()).To(Equal("default/a=1"))
}

func TestHandlerIsRemoved(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	g.Expect(c.Create(profile("a", "1"))).To(Succeed())
	counted := &countingInformers{Cache: newCache(t, c, cache.Options{})}
	mctest.StartManager(t, counted.Cache)
	source, err := hub.New(c.Config(), hub.Options{Cache: counted})
	g.Expect(err).NotTo(HaveOccurred())
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		sink := newStore()
		ended := make(chan error, 1)
		go func() { ended <- source.Run(ctx, sink) }()
		g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/a=1"), "in each run")
		cancel()
		g.Expect(<-ended).To(Succeed())
		g.Expect(counted.handlers.Load()).To(BeZero())
	}
}

func TestRunEndsWhileCacheHangs(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	hanging := &hangingInformers{asked: make(chan struct{}), release: make(chan struct{})}
	defer close(hanging.release)
	source, err := hub.New(c.Config(), hub.Options{Cache: hanging})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, newStore()) }()
	<-hanging.asked
	cancel()
	g.Eventually(ended).WithTimeout(timeout).Should(Receive(BeNil()))
}

// hangingInformers ignores contexts, as discovery does.
type hangingInformers struct {
	cache.Cache
	asked, release chan struct{}
}

func (h *hangingInformers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	close(h.asked)
	<-h.release
	return nil, errors.New("released")
}

// countingInformers counts the event handlers of its informers.
type countingInformers struct {
	cache.Cache
	handlers atomic.Int32
}

func (c *countingInformers) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, object, options...)
	return countingInformer{informer, c}, err
}

type countingInformer struct {
	cache.Informer
	*countingInformers
}

func (i countingInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handlers.Add(1)
	return i.Informer.AddEventHandler(h)
}

func (i countingInformer) RemoveEventHandler(r toolscache.ResourceEventHandlerRegistration) error {
	i.handlers.Add(-1)
	return i.Informer.RemoveEventHandler(r)
}
