// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// request sends one request.
func request(t *testing.T, cs kubernetes.Interface, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return cs.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/configmaps").MaxRetries(0).Do(ctx).Error()
}

const (
	long  = mctest.Timeout
	brief = 200 * time.Millisecond
)

func TestFaults(t *testing.T) {
	is := func(target error) func(error) bool {
		return func(err error) bool { return errors.Is(err, target) }
	}
	for _, test := range []struct {
		name  string
		fault mctest.Fault
		fails func(error) bool
	}{
		{"hang", mctest.Hang, is(context.DeadlineExceeded)},
		{"freeze", mctest.Freeze, is(context.DeadlineExceeded)},
		{"refuse", mctest.Refuse, is(syscall.ECONNREFUSED)},
		{"reset", mctest.Reset, is(syscall.ECONNRESET)},
		{"unauthorized", mctest.Unauthorized, apierrors.IsUnauthorized},
		{"forbidden", mctest.Forbidden, apierrors.IsForbidden},
		{"too many requests", mctest.TooManyRequests(time.Second), apierrors.IsTooManyRequests},
		{"unavailable", mctest.Unavailable, apierrors.IsServiceUnavailable},
		{"slow", mctest.Slow(time.Minute), is(context.DeadlineExceeded)},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			cs := kubernetes.NewForConfigOrDie(c.Config())
			g.Expect(request(t, cs, long)).To(Succeed())
			lift := c.Fault(test.fault)
			fails := func() error { return request(t, cs, brief) }
			// The client may not know yet that its connection is closed.
			g.Eventually(fails).Should(Satisfy(test.fails))
			lift()
			lift()
			g.Eventually(func() error { return request(t, cs, long) }).Should(Succeed())
			c.Fault(test.fault)
			g.Eventually(fails).Should(Satisfy(test.fails))
			c.Clear()
			g.Eventually(func() error { return request(t, cs, long) }).Should(Succeed())
		})
	}
}

func TestNarrowedFaults(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	cs := kubernetes.NewForConfigOrDie(c.Config())
	c.Fault(mctest.Forbidden.On("secrets"))
	c.Fault(mctest.Forbidden.For("create").On("configmaps", "deployments.apps"))
	_, err := cs.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	_, err = cs.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = cs.CoreV1().ConfigMaps("default").Create(t.Context(), newConfigMap("a"), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	_, err = cs.AppsV1().Deployments("default").Create(t.Context(), deployment("default", "a"), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	g.Expect(c.Create(newConfigMap("a"))).To(Succeed(), "faults do not affect methods of the cluster")
}

func TestFaultsOfWholeCluster(t *testing.T) {
	for name, fault := range map[string]mctest.Fault{"refuse": mctest.Refuse, "freeze": mctest.Freeze} {
		t.Run(name, func(t *testing.T) {
			c := mctest.New(t)
			c.Fault(fault.On("pods").For("create"))
			NewWithT(t).Expect(request(t, kubernetes.NewForConfigOrDie(c.Config()), brief)).NotTo(Succeed())
		})
	}
}

func TestNarrowedReset(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	cs := kubernetes.NewForConfigOrDie(c.Config())
	c.Fault(mctest.Reset.On("configmaps"))
	_, err := cs.Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(request(t, cs, long)).NotTo(Succeed())
	_, err = cs.Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
}

func TestRetryAfter(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.Fault(mctest.TooManyRequests(1500 * time.Millisecond))
	err := request(t, kubernetes.NewForConfigOrDie(c.Config()), long)
	seconds, ok := apierrors.SuggestsClientDelay(err)
	g.Expect(ok).To(BeTrue())
	g.Expect(seconds).To(Equal(2))
}

func TestHangingRequestIsAnsweredLater(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	cs := kubernetes.NewForConfigOrDie(c.Config())
	c.Fault(mctest.Hang.For("list"))
	answered := make(chan error, 1)
	go func() { answered <- request(t, cs, long) }()
	g.Eventually(func() int { return c.Requests("list", "configmaps") }).Should(Equal(1))
	g.Consistently(answered).WithTimeout(brief).ShouldNot(Receive())
	c.Clear()
	g.Eventually(answered).Should(Receive(BeNil()))
}

func TestWatchesUnderFaults(t *testing.T) {
	open := func(t *testing.T, c *mctest.Cluster, o metav1.ListOptions) watch.Interface {
		t.Helper()
		w, err := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().ConfigMaps("default").Watch(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		return w
	}
	revision := func(t *testing.T, c *mctest.Cluster, name string) string {
		t.Helper()
		cm := newConfigMap(name)
		NewWithT(t).Expect(c.Create(cm)).To(Succeed())
		return cm.ResourceVersion
	}
	t.Run("a watch falls silent while the cluster hangs, and catches up", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		w := open(t, c, metav1.ListOptions{})
		revision(t, c, "a")
		g.Expect(describeEvent(t, next(t, w))).To(Equal("ADDED a"))
		for _, fault := range []mctest.Fault{mctest.Hang, mctest.Freeze} {
			cm := newConfigMap("")
			cm.GenerateName = "b-"
			c.Fault(fault)
			g.Expect(c.Create(cm)).To(Succeed())
			g.Consistently(w.ResultChan()).WithTimeout(brief).ShouldNot(Receive())
			c.Clear()
			g.Expect(describeEvent(t, next(t, w))).To(Equal("ADDED " + cm.Name))
		}
	})
	t.Run("a watch that expires ends with 410, and so do those that resume", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		rv := revision(t, c, "a")
		w := open(t, c, metav1.ListOptions{ResourceVersion: rv})
		g.Eventually(func() int { return c.OpenWatches("configmaps") }).Should(Equal(1))
		c.Fault(mctest.Expired)
		g.Expect(apierrors.FromObject(next(t, w).Object)).To(MatchError(apierrors.IsResourceExpired, "IsResourceExpired"))
		w = open(t, c, metav1.ListOptions{ResourceVersion: rv})
		g.Expect(apierrors.FromObject(next(t, w).Object)).To(MatchError(apierrors.IsResourceExpired, "IsResourceExpired"))
		g.Eventually(func() int { return c.OpenWatches("") }).Should(BeZero())
	})
	t.Run("informers list again while watches expire", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		informer, _ := newInformer(t, kubernetes.NewForConfigOrDie(c.Config()))
		c.Fault(mctest.Expired)
		revision(t, c, "a")
		g.Eventually(informer.GetStore().ListKeys).Should(ConsistOf("default/a"))
		g.Eventually(func() int { return c.OpenWatches("configmaps") }).Should(Equal(1))
	})
	t.Run("a watch whose client does not read ends", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t, mctest.Options{WatchWriteTimeout: brief})
		body, err := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().RESTClient().Get().
			AbsPath("/api/v1/configmaps").Param("watch", "true").Stream(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		defer body.Close()
		for i := range 20 {
			cm := newConfigMap(fmt.Sprint("big-", i))
			cm.Data = map[string]string{"x": strings.Repeat("x", 1<<20)}
			g.Expect(c.Create(cm)).To(Succeed(), "the writer does not wait")
		}
		g.Eventually(func() int { return c.OpenWatches("") }).Should(BeZero())
	})
	t.Run("a watch from before the history was compacted ends with 410", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		rv := revision(t, c, "a")
		revision(t, c, "b")
		running := open(t, c, metav1.ListOptions{ResourceVersion: rv})
		g.Expect(describeEvent(t, next(t, running))).To(Equal("ADDED b"))
		c.Compact()
		w := open(t, c, metav1.ListOptions{ResourceVersion: rv})
		g.Expect(apierrors.FromObject(next(t, w).Object)).To(MatchError(apierrors.IsResourceExpired, "IsResourceExpired"))
		revision(t, c, "c")
		g.Expect(describeEvent(t, next(t, running))).To(Equal("ADDED c"), "an open watch stays open")
	})
	t.Run("a page from before the history was compacted expires with a new continue token", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		revision(t, c, "a")
		revision(t, c, "b")
		configMaps := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().ConfigMaps("default")
		page, err := configMaps.List(t.Context(), metav1.ListOptions{Limit: 1})
		g.Expect(err).NotTo(HaveOccurred())
		revision(t, c, "c")
		c.Compact()
		_, err = configMaps.List(t.Context(), metav1.ListOptions{Continue: page.Continue})
		g.Expect(err).To(MatchError(apierrors.IsResourceExpired, "IsResourceExpired"))
		status := apierrors.APIStatus(nil)
		g.Expect(errors.As(err, &status)).To(BeTrue())
		rest, err := configMaps.List(t.Context(), metav1.ListOptions{Continue: status.Status().Continue})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(rest)).To(Equal([]string{"b", "c"}))
	})
	t.Run("a watch from further back than history reaches ends with 410", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t, mctest.Options{History: 4})
		rv := revision(t, c, "a")
		for range 20 {
			cm := newConfigMap("")
			cm.GenerateName = "b-"
			g.Expect(c.Create(cm)).To(Succeed())
		}
		w := open(t, c, metav1.ListOptions{ResourceVersion: rv})
		g.Expect(apierrors.FromObject(next(t, w).Object)).To(MatchError(apierrors.IsResourceExpired, "IsResourceExpired"))
	})
	t.Run("bookmarks are sent between events", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t, mctest.Options{BookmarkInterval: 10 * time.Millisecond})
		rv := revision(t, c, "a")
		w := open(t, c, metav1.ListOptions{ResourceVersion: rv, AllowWatchBookmarks: true})
		g.Expect(c.Create(deployment("default", "elsewhere"))).To(Succeed())
		g.Eventually(func() string {
			event := next(t, w)
			g.Expect(event.Type).To(Equal(watch.Bookmark))
			return event.Object.(metav1.Object).GetResourceVersion()
		}).ShouldNot(Equal(rv), "bookmarks have the revision of the whole cluster")
	})
	t.Run("informers miss nothing when connections are closed", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		informer, _ := newInformer(t, kubernetes.NewForConfigOrDie(c.Config()))
		for _, name := range []string{"a", "b"} {
			c.CloseConnections()
			revision(t, c, name)
			g.Eventually(func() bool {
				_, exists, err := informer.GetStore().GetByKey("default/" + name)
				return exists && err == nil
			}).Should(BeTrue())
		}
	})
}
