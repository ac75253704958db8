// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/namespace"
)

// runCluster runs a cluster of a server.
func runCluster(t *testing.T, server *mctest.Cluster, opts ...cluster.Option) cluster.Cluster {
	t.Helper()
	cl, err := cluster.New(server.Config(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.GetHTTPClient().CloseIdleConnections)
	mctest.StartManager(t, cl)
	return cl
}

// events collects the objects of events.
type events struct {
	mu  sync.Mutex // guards all
	all []string
}

func (e *events) add(what string, obj any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if deleted, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = deleted.Obj
	}
	object := obj.(client.Object)
	e.all = append(e.all, what+" "+object.GetNamespace()+"/"+object.GetName())
}

func (e *events) seen() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

func (e *events) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { e.add("add", obj) },
		UpdateFunc: func(_, obj any) { e.add("update", obj) },
		DeleteFunc: func(obj any) { e.add("delete", obj) },
	}
}

func TestInformers(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t)
	shared := runCluster(t, server)
	a, closeA := namespace.NewCluster("a", shared)
	b, closeB := namespace.NewCluster("b", shared)
	defer closeB()
	ctx := t.Context()
	g.Expect(a.Name()).To(Equal("a"))

	ofA, ofB := &events{}, &events{}
	informer, err := a.GetCache().GetInformer(ctx, &corev1.ConfigMap{})
	g.Expect(err).NotTo(HaveOccurred())
	handle, err := informer.AddEventHandler(ofA.handler())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = informer.AddEventHandlerWithResyncPeriod(ofA.handler(), time.Hour)
	g.Expect(err).NotTo(HaveOccurred())
	forKind, err := b.GetCache().GetInformerForKind(ctx, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = forKind.AddEventHandlerWithOptions(ofB.handler(), toolscache.HandlerOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, cl := range []cluster.Cluster{a, b} {
		g.Expect(cl.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	}
	g.Expect(informer.AddIndexers(toolscache.Indexers{})).To(MatchError(ContainSubstring("shared")))
	g.Expect(forKind.RemoveEventHandler(handle)).To(Succeed(), "has no effect through another namespace")

	g.Expect(server.Create(configMap("b", "y"), configMap("a", "y"))).To(Succeed())
	changed := configMap("a", "y")
	changed.Data["changed"] = "true"
	g.Expect(server.Update(changed)).To(Succeed())
	g.Expect(server.Delete(configMap("b", "y"))).To(Succeed())
	g.Eventually(ofB.seen).Should(Equal([]string{"add b/x", "add b/y", "delete b/y"}))
	g.Eventually(ofA.seen).Should(ConsistOf("add a/x", "add a/y", "add a/x", "add a/y", "update a/y", "update a/y"))

	// What one namespace removes, others keep.
	g.Expect(a.GetCache().RemoveInformer(ctx, &corev1.ConfigMap{})).To(Succeed())
	closeA()
	g.Expect(informer.IsStopped()).To(BeTrue())
	g.Expect(forKind.IsStopped()).To(BeFalse())
	_, err = informer.AddEventHandler(ofA.handler())
	g.Expect(err).To(MatchError(ContainSubstring("disengaged")))
	g.Expect(server.Create(configMap("a", "z"), configMap("b", "z"))).To(Succeed())
	g.Eventually(ofB.seen).Should(ContainElement("add b/z"))
	g.Expect(ofA.seen()).NotTo(ContainElement("add a/z"))
	g.Expect(server.OpenWatches("configmaps")).To(Equal(1))
}

func TestClusterScopedInformer(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t)
	a, closeA := namespace.NewCluster("a", runCluster(t, server))
	defer closeA()
	informer, err := a.GetCache().GetInformer(t.Context(), &rbacv1.ClusterRole{})
	g.Expect(err).NotTo(HaveOccurred())
	seen := &events{}
	_, err = informer.AddEventHandler(seen.handler())
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(seen.seen).Should(ConsistOf("add /shared"))
}

// TestForeignKind has an informer of other code that cannot sync.
func TestForeignKind(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t)
	server.Fault(mctest.Forbidden.On("secrets"))
	shared := runCluster(t, server)
	_, err := shared.GetCache().GetInformer(t.Context(), &corev1.Secret{}, cache.BlockUntilSynced(false))
	g.Expect(err).NotTo(HaveOccurred())
	a, closeA := namespace.NewCluster("a", shared)
	defer closeA()
	g.Expect(a.GetCache().WaitForCacheSync(t.Context())).To(BeTrue())
}

func TestWatch(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t)
	withWatch := func(o *cluster.Options) {
		o.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
			return client.NewWithWatch(config, options)
		}
	}
	shared := runCluster(t, server, withWatch)
	a, closeA := namespace.NewCluster("a", shared)
	defer closeA()
	c := a.GetClient().(client.WithWatch)
	_, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("b"))
	g.Expect(err).To(MatchError(namespace.ErrOutsideNamespace))
	watching, err := c.Watch(t.Context(), &corev1.ConfigMapList{})
	g.Expect(err).NotTo(HaveOccurred())
	defer watching.Stop()
	g.Expect(server.Create(configMap("b", "y"), configMap("a", "y"))).To(Succeed())
	for _, want := range []string{"a/x", "a/y"} {
		object := (<-watching.ResultChan()).Object.(client.Object)
		g.Expect(object.GetNamespace() + "/" + object.GetName()).To(Equal(want))
	}
	without, closeIt := namespace.NewCluster("a", runCluster(t, server))
	defer closeIt()
	_, err = without.GetClient().(client.WithWatch).Watch(t.Context(), &corev1.ConfigMapList{})
	g.Expect(err).To(MatchError(ContainSubstring("cannot watch")))
}

func TestEventRecorders(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t)
	a, closeA := namespace.NewCluster("a", runCluster(t, server))
	defer closeA()
	legacy, current := a.GetEventRecorderFor("legacy"), a.GetEventRecorder("current") //nolint:staticcheck // deprecated, but works
	// The ones to be dropped come first.
	for _, object := range []runtime.Object{
		configMap("b", "foreign"), &corev1.ObjectReference{Kind: "ConfigMap", Namespace: "b", Name: "foreign"},
		role(), configMap("", "x"), configMap("a", "y"),
	} {
		legacy.Event(object, "Normal", "One", "message")
		legacy.Eventf(object, "Normal", "Two", "message")
		legacy.AnnotatedEventf(object, nil, "Normal", "Three", "message")
		current.Eventf(object, configMap("b", "x"), "Normal", "Four", "Test", "note")
		current.AnnotatedEventf(object, nil, nil, "Normal", "Five", "Test", "note")
	}
	count := func(namespace string) func() int {
		return func() int {
			list := &eventsv1.EventList{}
			legacy := &corev1.EventList{}
			g.Expect(server.List(list, client.InNamespace(namespace))).To(Succeed())
			g.Expect(server.List(legacy, client.InNamespace(namespace))).To(Succeed())
			return len(list.Items) + len(legacy.Items)
		}
	}
	g.Eventually(count("a")).Should(BeNumerically(">=", 15), "five for each of three objects")
	list := &corev1.EventList{}
	g.Expect(server.List(list)).To(Succeed())
	g.Expect(list.Items).NotTo(ContainElement(HaveField("InvolvedObject.Name", "foreign")))
	ofEventsAPI := &eventsv1.EventList{}
	g.Expect(server.List(ofEventsAPI)).To(Succeed())
	g.Expect(ofEventsAPI.Items).NotTo(ContainElement(HaveField("Regarding.Name", "foreign")))
	for _, other := range []string{"b", metav1.NamespaceDefault} {
		g.Expect(count(other)()).To(BeZero(), other)
	}
}
