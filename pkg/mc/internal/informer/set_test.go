// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/informer"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/sources"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

var errDown = errors.New("down")

// api is an API server with one object of each kind.
type api struct {
	mu       sync.Mutex     // guards what follows
	version  map[string]int // by resource
	status   map[string]int // of all responses, by resource
	down     bool
	closing  bool   // watches end at once
	expired  bool   // no watch can continue
	delay    string // Retry-After of errors
	requests []string
	bodies   []*io.PipeWriter
}

// RoundTrip implements http.RoundTripper.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	resource, query := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], r.URL.Query()
	verb := "list"
	switch {
	case query.Get("sendInitialEvents") != "":
		verb = "watchlist"
	case query.Get("watch") != "":
		verb = "watch"
	case query.Get("limit") == "1":
		verb = "ask"
	}
	a.requests = append(a.requests, strings.TrimSpace(verb+" "+resource+" "+query.Get("resourceVersion")))
	if a.down {
		return nil, errDown
	}
	version := a.version[resource]
	status := func(code int, reason metav1.StatusReason, message string) (*http.Response, error) {
		text := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
		failed := response(r, code, io.NopCloser(strings.NewReader(text)))
		failed.Header.Set("Retry-After", a.delay)
		return failed, nil
	}
	if code := a.status[resource]; code != 0 {
		return status(code, metav1.StatusReasonForbidden, "denied")
	}
	if asked, _ := strconv.Atoi(query.Get("resourceVersion")); verb != "watch" && asked > version {
		return status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Too large resource version")
	}
	object := fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a%d","namespace":"default","resourceVersion":"%d"}}`, version, version)
	if verb == "list" || verb == "ask" {
		text := fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, version, object)
		return response(r, http.StatusOK, io.NopCloser(strings.NewReader(text))), nil
	}
	if a.expired && verb == "watch" {
		return status(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
	}
	if a.closing {
		return response(r, http.StatusOK, io.NopCloser(strings.NewReader(""))), nil
	}
	reader, writer := io.Pipe()
	a.bodies = append(a.bodies, writer)
	context.AfterFunc(r.Context(), func() { writer.CloseWithError(context.Canceled) })
	if verb == "watchlist" {
		bookmark := fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d","annotations":{%q:"true"}}}`, version, metav1.InitialEventsAnnotationKey)
		go fmt.Fprintf(writer, `{"type":"ADDED","object":%s}{"type":"BOOKMARK","object":%s}`, object, bookmark)
	}
	return response(r, http.StatusOK, reader), nil
}

func response(r *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Body: body, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
	}
}

// set changes the API server.
func (a *api) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// cut ends all watches.
func (a *api) cut() {
	a.mu.Lock()
	bodies := a.bodies
	a.bodies = nil
	a.mu.Unlock()
	for _, body := range bodies {
		body.CloseWithError(errDown)
	}
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
}

// take returns the requests since the last call.
func (a *api) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.requests
	a.requests = nil
	return taken
}

// run runs informers of ConfigMaps and Secrets in virtual time. Both resources and
// namespaces have resource version 10.
func run(t *testing.T, test func(g *WithT, a *api, set *informer.Set, configMaps cache.SharedIndexInformer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &api{version: map[string]int{"configmaps": 10, "secrets": 10, "namespaces": 10}, status: map[string]int{}}
		set := informer.NewSet(logr.Discard())
		client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://fake/prefix", QPS: -1, Burst: 1}, &http.Client{Transport: set.Transport(a)})
		if err != nil {
			t.Fatal(err)
		}
		configMaps := set.New(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return client.CoreV1().ConfigMaps("").List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return client.CoreV1().ConfigMaps("").Watch(ctx, options)
			},
		}, &corev1.ConfigMap{}, 0, cache.Indexers{})
		secrets := set.New(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return client.CoreV1().Secrets("").List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return client.CoreV1().Secrets("").Watch(ctx, options)
			},
		}, &corev1.ConfigMap{}, 0, cache.Indexers{})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		for _, i := range []cache.SharedIndexInformer{configMaps, secrets} {
			// The default one waits for real time.
			if err := i.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
				t.Fatal(err)
			}
			running.Go(func() { i.RunWithContext(ctx) })
		}
		synctest.Wait()
		a.take()
		time.Sleep(time.Minute)
		test(NewWithT(t), a, set, configMaps)
		cancel()
		running.Wait()
		a.cut()
	})
}

func keys(i cache.SharedIndexInformer) []string { return i.GetStore().ListKeys() }

func TestOneRequestComparesVersions(t *testing.T) {
	run(t, func(g *WithT, a *api, set *informer.Set, _ cache.SharedIndexInformer) {
		g.Expect(set.InStep()).To(BeTrue())
		a.cut()
		g.Expect(a.take()).To(ConsistOf("ask namespaces", "watch configmaps 10", "watch secrets 10"))
		time.Sleep(time.Second)
		a.cut()
		g.Expect(a.take()).To(ConsistOf("ask namespaces", "watch configmaps 10", "watch secrets 10"), "after each loss")
		g.Expect(set.Behind()).To(BeEmpty())
		time.Sleep(time.Second)
		g.Expect(set.InStep()).To(BeTrue())
	})
}

func TestKindStoredElsewhere(t *testing.T) {
	run(t, func(g *WithT, a *api, _ *informer.Set, _ cache.SharedIndexInformer) {
		a.set(func() { a.version["namespaces"] = 5 })
		a.cut()
		g.Expect(a.take()).To(ConsistOf("ask namespaces", "ask configmaps", "ask secrets", "watch configmaps 10", "watch secrets 10"))
	})
}

func TestNamespacesCannotBeRead(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusTooManyRequests, http.StatusNotImplemented} {
		run(t, func(g *WithT, a *api, _ *informer.Set, _ cache.SharedIndexInformer) {
			a.set(func() { a.status["namespaces"] = code })
			a.cut()
			g.Expect(a.take()).To(ConsistOf("ask namespaces", "ask configmaps", "ask secrets", "watch configmaps 10", "watch secrets 10"))
		})
	}
}

func TestEarlierVersionListsAll(t *testing.T) {
	for _, secrets := range []int{5, 10} { // the store of Secrets may be another one
		run(t, func(g *WithT, a *api, set *informer.Set, configMaps cache.SharedIndexInformer) {
			a.set(func() { a.version["namespaces"], a.version["configmaps"], a.version["secrets"] = 5, 5, secrets })
			a.cut()
			g.Expect(set.InStep()).To(BeFalse(), "the caches are not listed yet")
			time.Sleep(5 * time.Second) // a reflector waits after an error
			synctest.Wait()
			g.Expect(a.take()).To(ContainElements("watchlist configmaps", "watchlist secrets"))
			g.Expect(keys(configMaps)).To(ConsistOf("default/a5"))
			g.Expect(set.InStep()).To(BeTrue())
			a.cut()
			g.Expect(a.take()).To(ContainElements("watch configmaps 5", fmt.Sprintf("watch secrets %d", secrets)), "it is over")
		})
	}
}

func TestHeldRequestsAreSentAtOnce(t *testing.T) {
	run(t, func(g *WithT, a *api, set *informer.Set, _ cache.SharedIndexInformer) {
		a.set(func() { a.down = true })
		a.cut()
		time.Sleep(30 * time.Second)
		g.Expect(a.take()).NotTo(BeEmpty(), "requests are repeated")
		g.Expect(set.Behind()).To(HaveLen(2))
		set.Hold()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		g.Expect(len(a.take())).To(BeNumerically("<=", 2), "at most those of a timer that had run out")
		a.set(func() { a.down = false })
		set.Resume()
		g.Expect(set.InStep()).To(BeFalse())
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		g.Expect(a.take()).To(ConsistOf("ask namespaces", "watch configmaps 10", "watch secrets 10"))
		set.Await(context.Background())
		g.Expect(set.Behind()).To(BeEmpty())
	})
}

func TestFirstSuccessSendsOthers(t *testing.T) {
	run(t, func(g *WithT, a *api, set *informer.Set, _ cache.SharedIndexInformer) {
		a.set(func() { a.down = true })
		a.cut()
		time.Sleep(time.Hour)
		a.take()
		a.set(func() { a.down = false })
		began := time.Now()
		for len(a.take()) == 0 {
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		g.Expect(time.Since(began)).To(BeNumerically("<=", time.Minute))
		g.Expect(set.Behind()).To(BeEmpty(), "both are watched")
	})
}

func TestWatchWithoutEventIsRestarted(t *testing.T) {
	run(t, func(g *WithT, a *api, _ *informer.Set, _ cache.SharedIndexInformer) {
		a.cut()
		a.take()
		for range 4 {
			a.cut()
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		for _, request := range a.take() {
			g.Expect(request).NotTo(HavePrefix("watchlist"))
			g.Expect(request).NotTo(HavePrefix("list"))
		}
	})
}

func TestWatchesThatEndAtOnceAreDelayed(t *testing.T) {
	run(t, func(g *WithT, a *api, set *informer.Set, _ cache.SharedIndexInformer) {
		a.set(func() { a.closing = true })
		a.cut()
		time.Sleep(10 * time.Minute)
		requests := a.take()
		t.Logf("%d requests", len(requests))
		g.Expect(len(requests)).To(BeNumerically("<", 200), "two kinds in ten minutes")
		g.Expect(requests).NotTo(ContainElement(HavePrefix("watchlist")))
		a.set(func() { a.closing = false })
		set.Resume()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		g.Expect(set.Behind()).To(BeEmpty(), "they are watched at once after Resume")
	})
}

func TestRetryAfterIsRespected(t *testing.T) {
	run(t, func(g *WithT, a *api, _ *informer.Set, _ cache.SharedIndexInformer) {
		a.set(func() {
			a.status["configmaps"], a.status["secrets"], a.delay = http.StatusServiceUnavailable, http.StatusServiceUnavailable, "20"
		})
		a.cut()
		a.take()
		time.Sleep(19 * time.Second)
		g.Expect(a.take()).To(BeEmpty())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		g.Expect(a.take()).NotTo(BeEmpty())
	})
}

func TestDeniedListIsReported(t *testing.T) {
	run(t, func(g *WithT, a *api, set *informer.Set, configMaps cache.SharedIndexInformer) {
		var reported []error
		var mu sync.Mutex
		ctx, cancel := context.WithCancel(context.Background())
		configMaps.(sources.ListErrorReporter).OnListError(ctx, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, err)
		})
		a.set(func() { a.status["configmaps"] = http.StatusForbidden })
		a.cut()
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		count := len(reported)
		g.Expect(reported).To(ContainElement(MatchError(ContainSubstring("denied"))))
		mu.Unlock()
		g.Expect(set.Behind()).To(ConsistOf(HaveField("Resource", "configmaps")))
		g.Expect(set.InStep()).To(BeTrue(), "the API server has responded")
		cancel()
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		g.Expect(reported).To(HaveLen(count), "not called after the context has ended")
		var late []error
		configMaps.(sources.ListErrorReporter).OnListError(context.Background(), func(err error) { late = append(late, err) })
		g.Expect(late).To(HaveLen(1))
	})
}
