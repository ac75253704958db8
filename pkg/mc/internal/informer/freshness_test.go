// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/informer"
)

// maxAge is how old caches may be in these tests.
const maxAge = 10 * time.Second

var configMapKind = func() informer.Kind {
	kind, err := informer.KindOf(&corev1.ConfigMap{}, nil)
	if err != nil {
		panic(err)
	}
	return kind
}()

// age returns how long ago the caches were in step, and whether they can be used.
func age(g *WithT, set *informer.Set) (time.Duration, bool) {
	f, ok := set.Freshness(configMapKind, maxAge)
	g.Expect(ok).To(BeTrue())
	return time.Since(f.InStep), f.FreshFor >= 0
}

// send sends text on all watches.
func (a *api) send(text string) {
	a.mu.Lock()
	bodies := a.bodies
	a.mu.Unlock()
	for _, body := range bodies {
		_, _ = io.WriteString(body, text)
	}
	synctest.Wait()
}

const bookmark = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"10"}}}`

// settle is how long after a gap data counts.
const settle = time.Second

// contact makes the cluster respond every 100 ms for so long.
func contact(set *informer.Set, during time.Duration) {
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		set.Contacted()
	}
}

func TestAgeOfIdleWatch(t *testing.T) {
	run(t, func(g *WithT, a *api, set *informer.Set, _ cache.SharedIndexInformer) {
		old, fresh := age(g, set)
		g.Expect(old).To(Equal(time.Minute), "there was no data since the initial list")
		g.Expect(fresh).To(BeFalse())

		set.Contacted()
		time.Sleep(settle - time.Millisecond)
		_, fresh = age(g, set)
		g.Expect(fresh).To(BeFalse(), "there may be a backlog")
		time.Sleep(time.Millisecond)
		old, fresh = age(g, set)
		g.Expect(old).To(Equal(settle), "the cluster has responded to another request")
		g.Expect(fresh).To(BeTrue())
		time.Sleep(5 * time.Second)
		set.Contacted()
		old, _ = age(g, set)
		g.Expect(old).To(Equal(6 * time.Second))
		time.Sleep(settle)
		old, _ = age(g, set)
		g.Expect(old).To(Equal(settle))

		time.Sleep(time.Minute)
		a.send(bookmark)
		time.Sleep(settle)
		old, fresh = age(g, set)
		g.Expect(old).To(Equal(settle), "a bookmark")
		g.Expect(fresh).To(BeTrue())
	})
}

// A backlog arrives for as long as there is no silence.
func TestBacklogIsAwaited(t *testing.T) {
	for _, tc := range []struct{ backlog, want time.Duration }{{5 * time.Second, 5 * time.Second}, {time.Minute, 10 * time.Second}} {
		run(t, func(g *WithT, a *api, set *informer.Set, _ cache.SharedIndexInformer) {
			began := time.Now()
			for time.Since(began) < tc.backlog {
				a.send(bookmark)
				time.Sleep(10 * time.Millisecond)
				if _, fresh := age(g, set); fresh {
					break
				}
			}
			set.AwaitFresh(context.Background(), configMapKind, maxAge)
			g.Expect(time.Since(began)).To(BeNumerically("~", tc.want, 2*time.Second))
		})
	}
}

func TestWatchWithoutBookmarksIsOld(t *testing.T) {
	for _, bookmarks := range []bool{false, true} {
		run(t, func(g *WithT, a *api, set *informer.Set, _ cache.SharedIndexInformer) {
			if bookmarks {
				a.send(bookmark)
			}
			contact(set, 2*time.Minute+maxAge)
			_, fresh := age(g, set)
			g.Expect(fresh).To(BeTrue())
			contact(set, time.Second)
			_, fresh = age(g, set)
			g.Expect(fresh).To(Equal(!bookmarks), "a watch that has sent bookmarks is silent")
			if bookmarks {
				a.send(bookmark)
				contact(set, settle)
				_, fresh = age(g, set)
				g.Expect(fresh).To(BeTrue())
			}
		})
	}
}

func TestAgeOfEndedWatch(t *testing.T) {
	run(t, func(g *WithT, a *api, set *informer.Set, _ cache.SharedIndexInformer) {
		contact(set, settle)
		last := time.Now().Add(-100 * time.Millisecond)
		a.set(func() { a.down = true })
		a.cut()
		contact(set, maxAge) // responses to others say nothing
		old, fresh := age(g, set)
		g.Expect(old).To(Equal(time.Since(last)))
		g.Expect(fresh).To(BeFalse())

		ended := make(chan time.Time, 1)
		go func() {
			set.AwaitFresh(context.Background(), configMapKind, maxAge)
			ended <- time.Now()
		}()
		a.set(func() { a.down = false })
		set.Resume()
		opened := time.Now()
		time.Sleep(900 * time.Millisecond)
		_, fresh = age(g, set)
		g.Expect(fresh).To(BeFalse(), "there may be a backlog")
		g.Expect((<-ended).Sub(opened)).To(And(BeNumerically(">=", settle), BeNumerically("<", 3*time.Second)))
		g.Expect(a.take()).NotTo(ContainElement(HavePrefix("watchlist")))
	})
}

func TestShortGapKeepsCacheFresh(t *testing.T) {
	run(t, func(g *WithT, a *api, set *informer.Set, _ cache.SharedIndexInformer) {
		contact(set, settle)
		for range 5 {
			a.cut()
			for range 20 {
				contact(set, 100*time.Millisecond)
				old, fresh := age(g, set)
				g.Expect(fresh).To(BeTrue())
				g.Expect(old).To(BeNumerically("<", 2*time.Second))
			}
		}
	})
}

func TestHeldCacheGrowsOld(t *testing.T) {
	run(t, func(g *WithT, a *api, set *informer.Set, _ cache.SharedIndexInformer) {
		contact(set, settle)
		set.Hold()
		contact(set, maxAge)
		a.send(bookmark)
		contact(set, time.Second)
		old, fresh := age(g, set)
		g.Expect(old).To(Equal(maxAge+time.Second), "bookmarks of an API server that fails probes say nothing")
		g.Expect(fresh).To(BeFalse())
		set.Resume()
		_, fresh = age(g, set)
		g.Expect(fresh).To(BeTrue())
	})
}

// After an interruption the API server may not have all objects yet.
func TestListAfterInterruption(t *testing.T) {
	for _, tc := range []struct {
		name   string
		outage time.Duration
		change func(a *api)
		waits  bool
	}{
		{"restored", 0, func(a *api) { a.version["namespaces"], a.version["configmaps"], a.version["secrets"] = 5, 5, 5 }, true},
		{"expired during an outage", 2 * time.Second, func(a *api) { a.expired = true }, true},
		{"expired without an outage", 0, func(a *api) { a.expired = true }, false},
		{"watch goes on after an outage", 2 * time.Second, func(a *api) {}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, func(g *WithT, a *api, set *informer.Set, _ cache.SharedIndexInformer) {
				contact(set, settle)
				if tc.outage > 0 {
					a.set(func() { a.down = true })
					a.cut()
					time.Sleep(tc.outage)
				}
				a.set(func() { tc.change(a); a.down = false })
				if tc.outage > 0 {
					set.Resume()
				} else {
					a.cut()
				}
				contact(set, 5*time.Second) // a reflector waits after an error
				old, fresh := age(g, set)
				g.Expect(old).To(BeNumerically("<=", 100*time.Millisecond))
				g.Expect(fresh).To(Equal(!tc.waits))
				contact(set, maxAge)
				_, fresh = age(g, set)
				g.Expect(fresh).To(BeTrue())
			})
		})
	}
}

func TestFirstListIsFresh(t *testing.T) {
	for _, engagedAgain := range []bool{false, true} {
		run(t, func(g *WithT, _ *api, set *informer.Set, _ cache.SharedIndexInformer) {
			// The set is used by another informer whose kind has no cache yet.
			if engagedAgain {
				set.Interrupted()
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ThingList"})
			kind, err := informer.KindOf(list, nil)
			g.Expect(err).NotTo(HaveOccurred())
			_, known := set.Freshness(kind, maxAge)
			g.Expect(known).To(BeFalse())
			stop := startThings(set)
			f, known := set.Freshness(kind, maxAge)
			g.Expect(known).To(BeTrue())
			g.Expect(f.InStep).To(Equal(time.Now()))
			g.Expect(f.FreshFor >= 0).To(Equal(!engagedAgain), fmt.Sprint(f))
			contact(set, maxAge)
			f, _ = set.Freshness(kind, maxAge)
			g.Expect(f.FreshFor).To(Equal(maxAge - 100*time.Millisecond))
			stop()
		})
	}
}

// startThings runs an informer of unstructured objects.
func startThings(set *informer.Set) (stop func()) {
	thing := &unstructured.Unstructured{}
	thing.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Thing"})
	client := http.Client{Transport: set.Transport(&api{version: map[string]int{"things": 10}, status: map[string]int{}})}
	things := set.New(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://fake/api/v1/things", nil)
			if err != nil {
				return nil, err
			}
			response, err := client.Do(request)
			if err != nil {
				return nil, err
			}
			list := &unstructured.UnstructuredList{}
			list.SetResourceVersion("10")
			return list, response.Body.Close()
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // not supported
			}
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://fake/api/v1/things?watch=true&resourceVersion=10", nil)
			if err != nil {
				return nil, err
			}
			response, err := client.Do(request)
			if err != nil {
				return nil, err
			}
			w := watch.NewFake()
			context.AfterFunc(ctx, func() { response.Body.Close() })
			return w, nil
		},
	}, thing, 0, cache.Indexers{})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { things.RunWithContext(ctx) })
	synctest.Wait()
	return func() {
		cancel()
		running.Wait()
		synctest.Wait()
	}
}

func TestKindOf(t *testing.T) {
	g := NewWithT(t)
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	object, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	object.SetGroupVersionKind(gvk)
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind("ConfigMapList"))
	metadata, metadataList := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(gvk)
	metadataList.SetGroupVersionKind(gvk.GroupVersion().WithKind("ConfigMapList"))
	seen := map[informer.Kind]bool{}
	for _, pair := range [][2]runtime.Object{{&corev1.ConfigMap{}, &corev1.ConfigMapList{}}, {object, list}, {metadata, metadataList}} {
		of, err := informer.KindOf(pair[0], clientgoscheme.Scheme)
		g.Expect(err).NotTo(HaveOccurred())
		ofList, err := informer.KindOf(pair[1], clientgoscheme.Scheme)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(of).To(Equal(ofList))
		seen[of] = true
	}
	g.Expect(seen).To(HaveLen(3), "the caches are different ones")
}
