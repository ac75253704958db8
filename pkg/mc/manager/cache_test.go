// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// ownInformer is an informer of the program.
type ownInformer struct{ toolscache.SharedIndexInformer }

func newOwnInformer(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return &ownInformer{toolscache.NewSharedIndexInformer(lw, obj, resync, indexers)}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// newLocal returns a manager with a provider and these options.
func newLocal(t *testing.T, c *mctest.Cluster, set func(*mcmanager.Options)) mcmanager.Manager {
	t.Helper()
	options := mctest.ManagerOptions()
	set(&options)
	mgr, err := mcmanager.New(c.Config(), &provider{}, options)
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// cached returns the ConfigMaps of the default namespace in each representation, if
// they are the same.
func cached(t *testing.T, mgr mcmanager.Manager) string {
	t.Helper()
	untyped, metadata := &unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	var found []string
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, untyped, metadata} {
		if err := mgr.GetLocalManager().GetCache().List(t.Context(), list, client.InNamespace("default")); err != nil {
			return err.Error()
		}
		var names []string
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			names = append(names, o.(client.Object).GetName())
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		found = append(found, strings.Join(names, " "))
	}
	if found = slices.Compact(found); len(found) > 1 {
		return strings.Join(found, " | ")
	}
	return found[0]
}

// requests are the names that a controller of the local manager has reconciled, with
// whether the object was there.
type requests struct {
	mu   sync.Mutex
	last map[string]bool
}

// reconcileLocally adds a controller of controller-runtime to the local manager.
func reconcileLocally(t *testing.T, mgr mcmanager.Manager) *requests {
	t.Helper()
	seen, local := &requests{last: map[string]bool{}}, mgr.GetLocalManager()
	err := ctrl.NewControllerManagedBy(local).For(&corev1.ConfigMap{}).Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		err := local.GetClient().Get(ctx, req.NamespacedName, &corev1.ConfigMap{})
		seen.mu.Lock()
		defer seen.mu.Unlock()
		seen.last[req.Name] = err == nil
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}))
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// exist returns the names whose objects were there when last reconciled.
func (r *requests) exist() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for name, exists := range r.last {
		if exists {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// logLines are the lines of a log.
type logLines struct {
	mu  sync.Mutex
	all []string
}

func (l *logLines) add(_, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, args)
}

// with returns the lines that contain a text.
func (l *logLines) with(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.all), func(line string) bool { return !strings.Contains(line, text) })
}

func TestRestoredLocalCluster(t *testing.T) {
	inDefault := map[string]cache.Config{"default": {}}
	for _, tc := range []struct {
		name   string
		set    func(*mcmanager.Options)
		faults []mctest.Fault
	}{
		{"all namespaces", func(*mcmanager.Options) {}, nil},
		{"default namespaces", func(o *mcmanager.Options) {
			o.Cache.DefaultNamespaces = map[string]cache.Config{"default": {}, "kube-public": {}}
		}, nil},
		{"namespaces of the kind", func(o *mcmanager.Options) {
			o.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Namespaces: inDefault}}
		}, nil},
		{"informers of the program", func(o *mcmanager.Options) { o.Cache.NewInformer = newOwnInformer }, nil},
		{"a cache of the program", func(o *mcmanager.Options) {
			o.NewCache = func(config *rest.Config, opts cache.Options) (cache.Cache, error) {
				opts.DefaultNamespaces = inDefault
				return cache.New(config, opts)
			}
		}, nil},
		{"namespaces cannot be listed", func(*mcmanager.Options) {}, []mctest.Fault{mctest.Forbidden.On("namespaces").For("list")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c, lost := mctest.New(t), configMap("lost")
			for _, fault := range tc.faults {
				c.Fault(fault)
			}
			g.Expect(c.Create(configMap("kept"), lost)).To(Succeed())
			logged := &logLines{}
			mgr := newLocal(t, c, func(o *mcmanager.Options) {
				o.Logger = funcr.New(logged.add, funcr.Options{})
				tc.set(o)
			})
			seen, inCache := reconcileLocally(t, mgr), func() string { return cached(t, mgr) }
			mctest.StartManager(t, mgr)
			g.Eventually(inCache).WithTimeout(mctest.Timeout).Should(Equal("kept lost"))

			backup := c.Snapshot()
			g.Expect(c.Delete(lost)).To(Succeed())
			for range 5 { // the cluster stays far behind after it is restored
				g.Expect(c.Create(configMap("phantom"))).To(Succeed())
				g.Expect(c.Delete(configMap("phantom"))).To(Succeed())
			}
			g.Expect(c.Create(configMap("phantom"))).To(Succeed())
			g.Eventually(inCache).WithTimeout(mctest.Timeout).Should(Equal("kept phantom"))
			g.Eventually(seen.exist).WithTimeout(mctest.Timeout).Should(Equal("kept phantom"))

			c.Restore(backup)
			g.Expect(c.Create(configMap("new"))).To(Succeed())
			g.Eventually(inCache).WithTimeout(mctest.Timeout).Should(Equal("kept lost new"))
			g.Eventually(seen.exist).WithTimeout(mctest.Timeout).Should(Equal("kept lost new"))
			g.Expect(c.Create(configMap("newer"))).To(Succeed())
			g.Eventually(inCache).WithTimeout(mctest.Timeout).Should(Equal("kept lost new newer"))
			g.Expect(logged.with("restored to an earlier state")).To(And(Not(BeEmpty()), HaveEach(ContainSubstring(`"cluster"=""`))))
		})
	}
}

func TestOutageOfLocalCluster(t *testing.T) {
	for name, fault := range map[string]mctest.Fault{
		"no connection": mctest.Refuse, "401": mctest.Unauthorized, "503": mctest.Unavailable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := mctest.New(t)
			g.Expect(c.Create(configMap("kept"))).To(Succeed())
			logged, handled := &logLines{}, &errorsOf{}
			mgr := newLocal(t, c, func(o *mcmanager.Options) {
				o.Logger = funcr.New(logged.add, funcr.Options{})
				o.Cache.DefaultWatchErrorHandler = handled.handle
			})
			inCache := func() string { return cached(t, mgr) }
			mctest.StartManager(t, mgr)
			g.Eventually(inCache).WithTimeout(mctest.Timeout).Should(Equal("kept"))
			lift := c.Fault(fault)
			c.CloseConnections()
			g.Expect(c.Create(configMap("new"))).To(Succeed())
			g.Eventually(func() []string { return logged.with("Watch failed, retrying") }).WithTimeout(mctest.Timeout).ShouldNot(BeEmpty())
			g.Expect(inCache()).To(Equal("kept"), "it can be read during the outage")
			lift()
			g.Eventually(inCache).WithTimeout(mctest.Timeout).Should(Equal("kept new"))
			g.Expect(handled.has(func(error) bool { return true })()).To(BeFalse(), "the reflector gets no error")
		})
	}
}

// firstTransport is a transport that cannot be compared.
type firstTransport func(*http.Request) (*http.Response, error)

func (f firstTransport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCacheOptionsOfProgram(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	config := c.Config()
	httpClient, err := rest.HTTPClientFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	var sent atomic.Int32
	transport := httpClient.Transport
	httpClient.Transport = firstTransport(func(r *http.Request) (*http.Response, error) {
		sent.Add(1)
		return transport.RoundTrip(r)
	})
	httpClient.Timeout = time.Hour
	before := *httpClient
	for _, p := range []multicluster.Provider{&provider{}, nil} {
		var got []cache.Options
		options := mctest.ManagerOptions()
		options.Cache.HTTPClient = httpClient
		options.Cache.NewInformer = newOwnInformer
		options.NewCache = func(config *rest.Config, opts cache.Options) (cache.Cache, error) {
			got = append(got, opts)
			return cache.New(config, opts)
		}
		mgr, err := mcmanager.New(config, p, options)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(HaveLen(1))
		g.Expect(got[0].HTTPClient == httpClient).To(Equal(p == nil), "without a provider it is the one of the options")
		g.Expect(got[0].HTTPClient.Timeout).To(Equal(time.Hour))
		g.Expect(httpClient.Transport).To(BeAssignableToTypeOf(before.Transport), "it is not changed")

		local := mgr.GetLocalManager()
		g.Expect(local.GetConfig()).To(BeIdenticalTo(config))
		g.Expect(config.Transport).To(BeNil())
		g.Expect(local.GetHTTPClient()).NotTo(BeIdenticalTo(got[0].HTTPClient))
		sent.Store(0)
		g.Expect(c.Create(configMap("a"))).To(Succeed())
		stop := mctest.StartManager(t, mgr)
		// Not metadata: those watches of controller-runtime leave a goroutine behind.
		key := client.ObjectKeyFromObject(configMap("a"))
		g.Eventually(func() error { return local.GetCache().Get(t.Context(), key, &corev1.ConfigMap{}) }).WithTimeout(mctest.Timeout).Should(Succeed())
		g.Expect(sent.Load()).NotTo(BeZero(), "the client of the options is used")
		found, err := local.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(BeAssignableToTypeOf(&ownInformer{}))
		stop()
		g.Expect(c.Delete(configMap("a"))).To(Succeed())
	}
}

func TestLocalClientIsNotChanged(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	with, without := newManager(t, c, &provider{}), newManager(t, c, nil)
	g.Expect(with.GetLocalManager().GetHTTPClient().Transport).To(
		BeAssignableToTypeOf(without.GetLocalManager().GetHTTPClient().Transport))
}

// errorsOf records the errors that a watch error handler gets.
type errorsOf struct {
	mu  sync.Mutex
	all []error
}

func (e *errorsOf) handle(_ context.Context, _ *toolscache.Reflector, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, err)
}

func (e *errorsOf) has(is func(error) bool) func() bool {
	return func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return slices.ContainsFunc(e.all, is)
	}
}

func TestWatchErrorHandlerOfProgram(t *testing.T) {
	g := NewWithT(t)
	c, handled := mctest.New(t), &errorsOf{}
	lift := c.Fault(mctest.Forbidden.On("configmaps").For("list", "watch"))
	missing := corev1.SchemeGroupVersion.WithKind("Missing")
	mgr := newLocal(t, c, func(o *mcmanager.Options) {
		o.Cache.DefaultWatchErrorHandler = handled.handle
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(missing, meta.RESTScopeNamespace)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			return mapper, nil
		}
	})
	mctest.StartManager(t, mgr)
	g.Eventually(mgr.Elected()).WithTimeout(mctest.Timeout).Should(BeClosed()) // it does not stop while its first informers cannot list
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(missing)
	for _, object := range []client.Object{&corev1.ConfigMap{}, untyped} {
		_, err := mgr.GetLocalManager().GetCache().GetInformer(t.Context(), object, cache.BlockUntilSynced(false))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Eventually(handled.has(apierrors.IsForbidden)).WithTimeout(mctest.Timeout).Should(BeTrue())
	g.Eventually(handled.has(apierrors.IsNotFound)).WithTimeout(mctest.Timeout).Should(BeTrue())
	lift()
	g.Expect(c.Create(configMap("a"))).To(Succeed())
	g.Eventually(func() string { return cached(t, mgr) }).WithTimeout(mctest.Timeout).Should(Equal("a"))
}

func TestReadYourWrites(t *testing.T) {
	g := NewWithT(t)
	mgr := newLocal(t, mctest.New(t), func(o *mcmanager.Options) {
		o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}
	})
	mctest.StartManager(t, mgr)
	cl := mgr.GetLocalManager().GetClient()
	for range 20 {
		g.Expect(cl.Create(t.Context(), configMap("a"))).To(Succeed())
		g.Expect(cl.Get(t.Context(), client.ObjectKeyFromObject(configMap("a")), &corev1.ConfigMap{})).To(Succeed())
		g.Expect(cl.Delete(t.Context(), configMap("a"))).To(Succeed())
		list := &corev1.ConfigMapList{}
		g.Expect(cl.List(t.Context(), list)).To(Succeed())
		g.Expect(list.Items).To(BeEmpty())
	}
}
