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

// request asks a cluster for something, once and not for long.
func request(t *testing.T, cs kubernetes.Interface, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return cs.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/configmaps").MaxRetries(0).Do(ctx).Error()
}

const (
	long  = 20 * time.Second
	brief = 200 * time.Millisecond
)

func TestFaultsFailRequestsUntilTheyAreCleared(t *testing.T) {
	is := func(target error) func(error) bool {
		return func(err error) bool { return errors.Is(err, target) }
	}
	for _, test := range []struct {
		name  string
		fault mctest.Fault
		fails func(error) bool
	}{
		{"a cluster that hangs lets requests run out of time", mctest.Hang, is(context.DeadlineExceeded)},
		{"a cluster that is frozen lets requests run out of time", mctest.Freeze, is(context.DeadlineExceeded)},
		{"a cluster that refuses takes no connection", mctest.Refuse, is(syscall.ECONNREFUSED)},
		{"a cluster that resets cuts connections", mctest.Reset, is(syscall.ECONNRESET)},
		{"a cluster may not know who asks", mctest.Unauthorized, apierrors.IsUnauthorized},
		{"a cluster may forbid", mctest.Forbidden, apierrors.IsForbidden},
		{"a cluster may have too much to do", mctest.TooManyRequests(time.Second), apierrors.IsTooManyRequests},
		{"a cluster may be unavailable", mctest.Unavailable, apierrors.IsServiceUnavailable},
		{"a cluster may be slow", mctest.Slow(time.Minute), is(context.DeadlineExceeded)},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			cs := kubernetes.NewForConfigOrDie(c.Config())
			g.Expect(request(t, cs, long)).To(Succeed())
			lift := c.Fault(test.fault)
			fails := func() error { return request(t, cs, brief) }
			// A client may yet have to learn that its connection is gone.
			g.Eventually(fails).WithTimeout(long).Should(Satisfy(test.fails))
			lift()
			lift()
			g.Eventually(func() error { return request(t, cs, long) }).Should(Succeed())
			c.Fault(test.fault)
			g.Eventually(fails).WithTimeout(long).Should(Satisfy(test.fails))
			c.Clear()
			g.Eventually(func() error { return request(t, cs, long) }).Should(Succeed())
		})
	}
}

func TestAFaultConcernsWhatItNames(t *testing.T) {
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
	g.Expect(c.Create(newConfigMap("a"))).To(Succeed(), "no fault concerns what goes without HTTP")
}

func TestSomeFaultsCannotBeNarrowed(t *testing.T) {
	for name, fault := range map[string]mctest.Fault{"refuse": mctest.Refuse, "freeze": mctest.Freeze} {
		t.Run(name, func(t *testing.T) {
			c := mctest.New(t)
			c.Fault(fault.On("pods").For("create"))
			NewWithT(t).Expect(request(t, kubernetes.NewForConfigOrDie(c.Config()), brief)).NotTo(Succeed())
		})
	}
}

func TestAResetMayConcernSomeRequests(t *testing.T) {
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

func TestTooManyRequestsSaysWhenToComeBack(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.Fault(mctest.TooManyRequests(1500 * time.Millisecond))
	err := request(t, kubernetes.NewForConfigOrDie(c.Config()), long)
	seconds, ok := apierrors.SuggestsClientDelay(err)
	g.Expect(ok).To(BeTrue())
	g.Expect(seconds).To(Equal(2))
}

func TestAHangingRequestIsAnsweredOnceTheFaultIsLifted(t *testing.T) {
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
		g.Expect(told(t, next(t, w))).To(Equal("ADDED a"))
		for _, fault := range []mctest.Fault{mctest.Hang, mctest.Freeze} {
			cm := newConfigMap("")
			cm.GenerateName = "b-"
			c.Fault(fault)
			g.Expect(c.Create(cm)).To(Succeed())
			g.Consistently(w.ResultChan()).WithTimeout(brief).ShouldNot(Receive())
			c.Clear()
			g.Expect(told(t, next(t, w))).To(Equal("ADDED " + cm.Name))
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
	t.Run("informers list again while watches expire, and stay", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		informer, _ := newInformer(t, kubernetes.NewForConfigOrDie(c.Config()))
		c.Fault(mctest.Expired)
		revision(t, c, "a")
		g.Eventually(informer.GetStore().ListKeys).WithTimeout(long).Should(ConsistOf("default/a"))
		g.Eventually(func() int { return c.OpenWatches("configmaps") }).WithTimeout(long).Should(Equal(1))
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
		g.Eventually(func() int { return c.OpenWatches("") }).WithTimeout(long).Should(BeZero())
	})
	t.Run("a watch from before the history was compacted ends with 410", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		rv := revision(t, c, "a")
		revision(t, c, "b")
		running := open(t, c, metav1.ListOptions{ResourceVersion: rv})
		g.Expect(told(t, next(t, running))).To(Equal("ADDED b"))
		c.Compact()
		w := open(t, c, metav1.ListOptions{ResourceVersion: rv})
		g.Expect(apierrors.FromObject(next(t, w).Object)).To(MatchError(apierrors.IsResourceExpired, "IsResourceExpired"))
		revision(t, c, "c")
		g.Expect(told(t, next(t, running))).To(Equal("ADDED c"), "an open watch goes on")
	})
	t.Run("a page from before the history was compacted is expired, and tells how to go on", func(t *testing.T) {
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
	t.Run("bookmarks come between events", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t, mctest.Options{BookmarkInterval: 10 * time.Millisecond})
		rv := revision(t, c, "a")
		w := open(t, c, metav1.ListOptions{ResourceVersion: rv, AllowWatchBookmarks: true})
		g.Expect(c.Create(deployment("default", "elsewhere"))).To(Succeed())
		g.Eventually(func() string {
			event := next(t, w)
			g.Expect(event.Type).To(Equal(watch.Bookmark))
			return event.Object.(metav1.Object).GetResourceVersion()
		}).ShouldNot(Equal(rv), "bookmarks follow the whole cluster")
	})
	t.Run("closed connections end watches, and informers come back and miss nothing", func(t *testing.T) {
		g := NewWithT(t)
		c := mctest.New(t)
		informer, _ := newInformer(t, kubernetes.NewForConfigOrDie(c.Config()))
		for _, name := range []string{"a", "b"} {
			c.CloseConnections()
			revision(t, c, name)
			g.Eventually(func() bool {
				_, exists, err := informer.GetStore().GetByKey("default/" + name)
				return exists && err == nil
			}).WithTimeout(long).Should(BeTrue())
		}
	})
}
