// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// cachedHub is a hub with one informer for each version, which follow the hub when
// the test lets them.
type cachedHub struct {
	ctrlcache.Informers
	*fakeHub
	t *testing.T

	informers map[string]cache.SharedIndexInformer

	mu       sync.Mutex // guards what follows
	revision int
	profiles map[string]*inventory.Profile
	served   map[string]bool
	pipes    map[string]*watch.FakeWatcher
	lines    []string
}

func newCachedHub(t *testing.T, served ...string) *cachedHub {
	h := &cachedHub{
		fakeHub: newFakeHub(t), t: t, informers: map[string]cache.SharedIndexInformer{}, profiles: map[string]*inventory.Profile{},
		served: map[string]bool{}, pipes: map[string]*watch.FakeWatcher{},
	}
	h.metadata.PrependReactor("list", profileResource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.served[action.GetResource().Version] {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{}, "")
		}
		list := &metav1.List{}
		for _, p := range h.profiles {
			list.Items = append(list.Items, runtime.RawExtension{Object: &metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta}})
		}
		return true, list, nil
	})
	h.serve(served...)
	return h
}

// serve changes which versions are served. Informers of others stay as they are.
func (h *cachedHub) serve(versions ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.served)
	for _, version := range versions {
		h.served[version] = true
	}
}

// Discovery implements versioned.Interface.
func (h *cachedHub) Discovery() discovery.DiscoveryInterface {
	return &hubDiscovery{h.Clientset.Discovery().(*fakediscovery.FakeDiscovery), h}
}

type hubDiscovery struct {
	*fakediscovery.FakeDiscovery
	hub *cachedHub
}

func (d *hubDiscovery) ServerResourcesForGroupVersionWithContext(_ context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	_, version, _ := strings.Cut(groupVersion, "/")
	switch {
	case d.hub.outage.Load() && version == v1alpha1.Version:
		return nil, errors.New("outage")
	case !d.hub.served[version]:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: profileResource}}}, nil
}

// GetInformer implements ctrlcache.Informers.
func (h *cachedHub) GetInformer(_ context.Context, object client.Object, _ ...ctrlcache.InformerGetOption) (ctrlcache.Informer, error) {
	version := object.GetObjectKind().GroupVersionKind().Version
	if version == "" {
		version = v1alpha1.Version
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.informers[version] == nil {
		if !h.served[version] {
			return nil, errors.New("no matches for kind")
		}
		h.informers[version] = cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return h.list(), nil },
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.pipes[version] = watch.NewFakeWithChanSize(100, false)
				return h.pipes[version], nil
			},
		}, h.Clientset), &inventory.Profile{}, 0, cache.Indexers{})
		go h.informers[version].RunWithContext(h.t.Context())
	}
	return h.informers[version], nil
}

func (h *cachedHub) list() *v1alpha1.ClusterProfileList {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := &v1alpha1.ClusterProfileList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(h.revision)}}
	for _, p := range h.profiles {
		list.Items = append(list.Items, *p.DeepCopy())
	}
	return list
}

// put writes a profile, and sends it to the informers of the versions.
func (h *cachedHub) put(name, label string, versions ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revision++
	p := named("fleet", name, "", 1)
	p.ResourceVersion, p.Labels = strconv.Itoa(h.revision), map[string]string{"version": label}
	before := h.profiles[name]
	h.profiles[name] = p
	for _, version := range versions {
		if before == nil {
			h.pipes[version].Add(p.DeepCopy())
		} else {
			h.pipes[version].Modify(p.DeepCopy())
		}
	}
}

// remove deletes a profile.
func (h *cachedHub) remove(name string, versions ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revision++
	p := h.profiles[name].DeepCopy()
	p.ResourceVersion = strconv.Itoa(h.revision)
	delete(h.profiles, name)
	for _, version := range versions {
		h.pipes[version].Delete(p.DeepCopy())
	}
}

// catchUp lets the informer of a version list again.
func (h *cachedHub) catchUp(version string) {
	h.mu.Lock()
	pipe := h.pipes[version]
	h.mu.Unlock()
	pipe.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410})
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

func (h *cachedHub) start() (*nameStore, *Source) {
	source := h.source(Options{Cache: h})
	source.client = h
	logger := funcr.New(func(_, args string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lines = append(h.lines, args)
	}, funcr.Options{})
	sink := &nameStore{profiles: map[string]*inventory.Profile{}}
	ctx, cancel := context.WithCancel(log.IntoContext(h.t.Context(), logger))
	ended := make(chan error)
	go func() { ended <- source.Run(ctx, sink) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	})
	synctest.Wait()
	return sink, source
}

// logged counts the log lines with a text.
func (h *cachedHub) logged(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Count(strings.Join(h.lines, "\n"), text)
}

// labels returns the profiles with their labels.
func (s *nameStore) labels() string {
	var all []string
	for name := range strings.FieldsSeq(s.names()) {
		s.mu.Lock()
		all = append(all, name+"="+s.profiles[name].Labels["version"])
		s.mu.Unlock()
	}
	return strings.Join(all, " ")
}

// poll waits until discovery has been asked again.
func poll() {
	time.Sleep(2 * versionPoll)
	synctest.Wait()
}

func TestCacheOfAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h := newCachedHub(t, "v1alpha1")
		h.put("a", "1")
		h.put("b", "1")
		h.put("gone", "1")
		sink, _ := h.start()
		g.Expect(sink.labels()).To(Equal("a=1 b=1 gone=1"))
		g.Expect(h.logged("all namespaces")).To(Equal(1), "the scope of the cache")

		h.serve("v1alpha2")
		h.remove("gone") // before the other informer exists
		h.put("a", "2")
		poll()
		g.Expect(sink.labels()).To(Equal("a=2 b=1"))
		h.put("new", "1", "v1alpha2")
		h.put("a", "3", "v1alpha2")
		h.remove("b", "v1alpha2")
		synctest.Wait()
		g.Expect(sink.labels()).To(Equal("a=3 new=1"))

		h.serve("v1alpha1") // its informer is far behind: a=1 b=1 gone=1
		h.put("a", "4")
		poll()
		g.Expect(sink.labels()).To(ContainSubstring("a=3"), "not an older state")
		g.Expect(sink.labels()).To(ContainSubstring("new=1"), "nothing is removed")
		h.catchUp("v1alpha1")
		g.Expect(sink.labels()).To(Equal("a=4 new=1"))
		h.put("a", "5", "v1alpha1")
		synctest.Wait()
		g.Expect(sink.labels()).To(Equal("a=5 new=1"))
		g.Expect(h.logged("another version of the API")).To(Equal(2), "once for each change")
		g.Expect(h.logged("all namespaces")).To(Equal(1))
	})
}

func TestHandoverOfRestoredHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h := newCachedHub(t, "v1alpha1")
		h.put("a", "1")
		sink, _ := h.start()
		backup := h.profiles["a"]
		h.serve("v1alpha2")
		h.put("a", "2")
		h.put("lost", "1")
		poll()
		g.Expect(sink.labels()).To(Equal("a=2 lost=1"))

		h.mu.Lock()
		h.profiles, h.revision = map[string]*inventory.Profile{"a": backup}, 1
		h.mu.Unlock()
		h.serve("v1alpha1")
		poll()
		g.Expect(sink.labels()).To(Equal("a=1"), "what the informer and the hub agree on")
	})
}

func TestHandoverToNarrowerCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h := newCachedHub(t, "v1alpha1")
		h.put("a", "1")
		sink, _ := h.start()
		h.serve("v1alpha2")
		h.put("outside", "1") // of the scope for v1alpha1
		poll()
		g.Expect(sink.names()).To(Equal("a outside"))

		h.serve("v1alpha1")
		poll()
		time.Sleep(2 * time.Minute)
		g.Expect(sink.names()).To(Equal("a outside"), "the informer may be behind")
		time.Sleep(10 * time.Minute)
		g.Expect(sink.names()).To(Equal("a"))
	})
}

func TestDiscoveryFailsOrIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h := newCachedHub(t, "v1alpha1", "v1alpha2")
		h.put("a", "1")
		sink, source := h.start()
		g.Expect(sink.names()).To(Equal("a"))
		version := func() string {
			return source.servedVersion(t.Context(), profileResource, v1alpha1.GroupVersion).Version
		}
		h.outage.Store(true)
		poll()
		g.Expect(version()).To(Equal("v1alpha1"), "kept, as it is not known to be gone")
		h.outage.Store(false)
		h.serve("v1alpha2")
		g.Expect(version()).To(Equal("v1alpha2"))
		h.serve()
		poll()
		g.Expect(version()).To(Equal("v1alpha1"), "kept, if none is served")
		g.Expect(sink.names()).To(Equal("a"))
	})
}
