// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/client/clientset/versioned/fake"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// fakeHub is a hub without a network, for tests with synctest.
type fakeHub struct {
	*fake.Clientset
	metadata *metadatafake.FakeMetadataClient

	outage  atomic.Bool // PlacementDecisions cannot be read
	mu      sync.Mutex  // guards watches
	watches []watch.Interface
}

func newFakeHub(t *testing.T, objects ...runtime.Object) *fakeHub {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	h := &fakeHub{Clientset: fake.NewSimpleClientset(objects...), metadata: metadatafake.NewSimpleMetadataClient(scheme)}
	errOutage := errors.New("outage")
	h.PrependReactor("list", "placementdecisions", func(clienttesting.Action) (bool, runtime.Object, error) {
		return h.outage.Load(), nil, errOutage
	})
	h.PrependWatchReactor("placementdecisions", func(action clienttesting.Action) (bool, watch.Interface, error) {
		if h.outage.Load() {
			return true, nil, errOutage
		}
		w, err := h.Tracker().Watch(action.GetResource(), action.GetNamespace())
		h.mu.Lock()
		defer h.mu.Unlock()
		h.watches = append(h.watches, w)
		return true, w, err
	})
	return h
}

// setOutage starts or ends an outage, and stops all watches.
func (h *fakeHub) setOutage(outage bool) {
	h.outage.Store(outage)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.watches {
		w.Stop()
	}
	h.watches = nil
}

func (h *fakeHub) source(options Options) *Source {
	return &Source{client: h.Clientset, metadata: h.metadata, options: options, namespaces: options.namespaces()}
}

// nameStore is a sink that keeps profiles by name.
type nameStore struct {
	mu       sync.Mutex
	profiles map[string]*inventory.Profile
}

func (s *nameStore) Put(p *inventory.Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profiles[p.Name] = p
}

func (s *nameStore) Remove(key inventory.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.profiles, key.Name)
}

func (s *nameStore) Synced() {}

func (s *nameStore) names() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(s.profiles)), " ")
}

// read runs the source until the test ends.
func read(t *testing.T, source *Source) *nameStore {
	t.Helper()
	sink := &nameStore{profiles: map[string]*inventory.Profile{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- source.Run(ctx, sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return sink
}

func TestOutageOfPlacementDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		first := slice("", "", "1", "a")
		first.Labels[v1alpha1.DecisionKeyLabel] = "x"
		hub := newFakeHub(t, named("fleet", "a", "", 1), named("fleet", "b", "", 1), first)
		sink := read(t, hub.source(Options{Placement: &Placement{Namespace: "fleet", DecisionKey: "x"}}))
		g.Expect(sink.names()).To(Equal("a"))

		first = first.DeepCopy()
		first.Decisions[0].ClusterProfileRef.Name = "b"
		_, err := hub.ApisV1alpha1().PlacementDecisions("fleet").Update(t.Context(), first, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		synctest.Wait()
		g.Expect(sink.names()).To(Equal("a b"), "until the grace has ended")

		hub.setOutage(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(sink.names()).To(Equal("a b"))

		hub.setOutage(false)
		time.Sleep(5 * time.Minute) // the longest backoff, and the grace
		synctest.Wait()
		g.Expect(sink.names()).To(Equal("b"))
	})
}

func TestManagedFieldsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		managed := named("fleet", "a", "", 1)
		managed.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		sink := read(t, newFakeHub(t, managed).source(Options{}))
		g.Expect(sink.names()).To(Equal("a"))
		g.Expect(sink.profiles["a"].ManagedFields).To(BeEmpty())
	})
}

func TestThrottling(t *testing.T) {
	for _, tc := range []struct {
		name string
		qps  float32
		want float32 // less than zero means no limit
	}{
		{"by default", 0, -1},
		{"explicitly", -1, -1},
		{"with a limit", 7, 7},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			config := &rest.Config{Host: "https://hub.example", QPS: tc.qps}
			source, err := New(config, Options{Namespace: "fleet"})
			g.Expect(err).NotTo(HaveOccurred())
			limit := float32(-1)
			if limiter := source.client.ApisV1alpha1().RESTClient().GetRateLimiter(); limiter != nil {
				limit = limiter.QPS()
			}
			g.Expect(limit).To(Equal(tc.want))
			g.Expect(config.QPS).To(Equal(tc.qps), "the argument is not changed")
		})
	}
}

func TestWatchOutlivesContext(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	var request context.Context
	w, err := startWatch(ctx, metav1.ListOptions{}, func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
		request = ctx
		return watch.NewFake(), nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	cancel()
	g.Expect(request.Err()).NotTo(HaveOccurred())
	w.Stop()
	g.Expect(request.Err()).To(HaveOccurred())
	g.Expect(w.ResultChan()).To(BeClosed())

	ctx, cancel = context.WithCancel(t.Context())
	_, err = startWatch(ctx, metav1.ListOptions{}, func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	g.Expect(err).To(MatchError(context.Canceled), "a watch that has not started ends with the context")
}
