// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multi_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/multi"
)

// start runs the provider until stop is called.
func start(t *testing.T, p *multi.Provider) (_ *recorder, stop func()) {
	t.Helper()
	aware := &recorder{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx, aware) }()
	return aware, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestAddAndRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		p, early, late := multi.New(multi.Options{}), engaging(), engaging()
		g.Expect(p.AddProvider("kind", early)).To(Succeed())
		g.Expect(p.ProviderStatus()).To(ConsistOf(multi.ProviderStatus{Name: "kind", State: multi.Added}))
		aware, stop := start(t, p)
		synctest.Wait()
		g.Expect(aware.names()).To(ConsistOf("kind#eu"))
		g.Expect(p.AddProvider("cloud", late)).To(Succeed())
		synctest.Wait()
		g.Expect(aware.names()).To(ConsistOf("kind#eu", "cloud#eu"))
		g.Expect(p.ProviderNames()).To(Equal([]string{"cloud", "kind"}))
		found, ok := p.GetProvider("cloud")
		g.Expect(ok).To(BeTrue())
		g.Expect(found).To(BeIdenticalTo(late))

		p.RemoveProvider("kind")
		g.Expect(aware.names()).To(ConsistOf("cloud#eu"), "at once")
		_, ok = p.GetProvider("kind")
		g.Expect(ok).To(BeFalse())
		p.RemoveProvider("kind")
		again := engaging()
		g.Expect(p.AddProvider("kind", again)).To(Succeed())
		synctest.Wait()
		g.Expect(aware.names()).To(ConsistOf("kind#eu", "cloud#eu"))
		cl, err := p.Get(t.Context(), "kind#eu")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cl).To(BeIdenticalTo(again.cluster))
		stop()
		g.Expect(aware.names()).To(BeEmpty())
		g.Expect(p.AddProvider("later", engaging())).To(MatchError(ContainSubstring("after the end")))
		g.Expect(multicluster.IsTerminal(p.Start(t.Context(), aware))).To(BeTrue())
	})
}

func TestNames(t *testing.T) {
	g := NewWithT(t)
	p := multi.New(multi.Options{Separator: "::"})
	var missing *fake
	g.Expect(p.AddProvider("", engaging())).To(MatchError(ContainSubstring("name of the provider")))
	g.Expect(p.AddProvider("a::b", engaging())).To(MatchError(ContainSubstring(`separator "::"`)))
	g.Expect(p.AddProvider("a", nil)).To(MatchError(ContainSubstring("must not be nil")))
	g.Expect(p.AddProvider("a", missing)).To(MatchError(ContainSubstring("must not be nil")))
	g.Expect(p.AddProvider("a", engaging())).To(Succeed())
	g.Expect(p.AddProvider("a", engaging())).To(MatchError(ContainSubstring(`"a" exists already`)))

	_, err := p.Get(t.Context(), "a::eu")
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range []multicluster.ClusterName{"a", "a#eu", "b::eu", "a::us", "eu", ""} {
		_, err := p.Get(t.Context(), name)
		g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
		g.Expect(err).To(MatchError(ContainSubstring(strconv.Quote(name.String()))))
	}
	_, err = p.Get(t.Context(), "a::waiting")
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotReady))
	g.Expect(err).To(MatchError(`cluster "a::waiting": cluster not ready: still asleep`))
	name, ok := multicluster.NotReadyCluster(err)
	g.Expect(ok).To(BeTrue())
	g.Expect(name).To(BeEquivalentTo("a::waiting"), "requests wait for the cluster of this name")
}

func TestHungProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		release := make(chan struct{})
		hung := engaging()
		inner := hung.start
		hung.start = func(ctx context.Context, aware multicluster.Aware, run int) error {
			_ = inner(ctx, aware, run)
			<-release // ignores its context
			return nil
		}
		deaf := engaging()
		deaf.index = func(context.Context) error { <-release; return nil }
		p, fine := multi.New(multi.Options{}), engaging()
		for name, one := range map[string]*fake{"hung": hung, "deaf": deaf, "fine": fine} {
			g.Expect(p.AddProvider(name, one)).To(Succeed())
		}
		aware, stop := start(t, p)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g.Expect(p.IndexField(ctx, &corev1.Pod{}, "f", nil)).To(MatchError(context.DeadlineExceeded))
		g.Expect(fine.indexed()).To(Equal([]string{"f"}))
		g.Expect(aware.names()).To(ConsistOf("fine#eu", "hung#eu", "deaf#eu"))

		began := time.Now()
		p.RemoveProvider("hung")
		p.RemoveProvider("deaf")
		g.Expect(time.Since(began)).To(BeZero())
		g.Expect(aware.names()).To(ConsistOf("fine#eu"))
		g.Expect(p.AddProvider("hung", engaging())).To(Succeed())
		synctest.Wait()
		g.Expect(aware.names()).To(ConsistOf("fine#eu", "hung#eu"), "not after the old one")
		time.AfterFunc(time.Minute, func() { close(release) })
		stop()
		g.Expect(time.Since(began)).To(Equal(time.Minute), "Start waits for all")
	})
}

func TestFailingProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		broken := errors.New("broken")
		fails := func(f *fake) *fake {
			f.start = func(_ context.Context, aware multicluster.Aware, run int) error {
				// A context of its own, which it forgets to end.
				_ = aware.Engage(context.Background(), "eu", f.cluster)
				if run == 3 {
					return multicluster.TerminalError(broken)
				}
				return broken
			}
			return f
		}
		p, once, twice, fine := multi.New(multi.Options{}), fails(engaging()), fails(engaging()), engaging()
		g.Expect(p.AddProvider("once", once)).To(Succeed())
		g.Expect(p.AddProvider("twice", restartable{twice})).To(Succeed())
		g.Expect(p.AddProvider("fine", fine)).To(Succeed())
		aware, stop := start(t, p)
		synctest.Wait()
		g.Expect(aware.names()).To(ConsistOf("fine#eu"), "the clusters of a provider that failed are disengaged")
		g.Expect(p.ProviderStatus()).To(Equal([]multi.ProviderStatus{
			{Name: "fine", State: multi.Running},
			{Name: "once", State: multi.Failed, LastError: "broken"},
			{Name: "twice", State: multi.Restarting, LastError: "broken"},
		}))
		g.Expect(p.ReadyCheck(0)(nil)).To(MatchError(ContainSubstring(`"once" is Failed: broken`)))
		time.Sleep(time.Second + 200*time.Millisecond)
		synctest.Wait()
		g.Expect(twice.started()).To(Equal(2))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		g.Expect(twice.started()).To(Equal(3))
		time.Sleep(time.Hour)
		g.Expect(twice.started()).To(Equal(3), "not after a terminal error")
		g.Expect(once.started()).To(Equal(1))
		g.Expect(aware.names()).To(ConsistOf("fine#eu"))
		p.RemoveProvider("once")
		p.RemoveProvider("twice")
		g.Expect(p.ReadyCheck(0)(nil)).To(Succeed())
		stop()
	})
}

func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		f := engaging()
		works := f.start
		f.start = func(ctx context.Context, aware multicluster.Aware, run int) error {
			if run == 1 {
				return errors.New("broken")
			}
			return works(ctx, aware, run)
		}
		p := multi.New(multi.Options{LoggerSuffix: "all"})
		aware, stop := start(t, p)
		g.Expect(p.AddProvider("a", restartable{f})).To(Succeed())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		g.Expect(aware.names()).To(ConsistOf("a#eu"))
		g.Expect(p.ProviderStatus()).To(ConsistOf(multi.ProviderStatus{Name: "a", State: multi.Running}))
		stop()
	})
}

func TestEndedProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		f := engaging()
		f.start = func(ctx context.Context, aware multicluster.Aware, _ int) error {
			return aware.Engage(ctx, "eu", f.cluster)
		}
		p := multi.New(multi.Options{})
		g.Expect(p.AddProvider("a", f)).To(Succeed())
		aware, stop := start(t, p)
		time.Sleep(time.Hour)
		g.Expect(p.ProviderStatus()).To(ConsistOf(multi.ProviderStatus{Name: "a", State: multi.Ended}))
		g.Expect(aware.names()).To(ConsistOf("a#eu"))
		p.RemoveProvider("a")
		g.Expect(aware.names()).To(BeEmpty())
		stop()
	})
}

func TestEngageAfterRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		f := engaging()
		result := make(chan error, 1)
		f.start = func(ctx context.Context, aware multicluster.Aware, _ int) error {
			<-ctx.Done()
			result <- aware.Engage(context.Background(), "eu", f.cluster)
			return nil
		}
		p := multi.New(multi.Options{})
		g.Expect(p.AddProvider("a", f)).To(Succeed())
		aware, stop := start(t, p)
		synctest.Wait()
		p.RemoveProvider("a")
		g.Expect(<-result).To(MatchError(ContainSubstring(`"a#eu"`)))
		g.Expect(aware.names()).To(BeEmpty())
		stop()
	})
}

func TestIndexes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		p, first, second := multi.New(multi.Options{}), engaging(), engaging()
		extract := func(client.Object) []string { return nil }
		g.Expect(p.AddProvider("first", first)).To(Succeed())
		g.Expect(p.IndexField(t.Context(), &corev1.Pod{}, "before", extract)).To(Succeed())
		_, stop := start(t, p)
		synctest.Wait()
		g.Expect(p.IndexField(t.Context(), &corev1.Pod{}, "after", extract)).To(Succeed())
		g.Expect(p.AddProvider("second", second)).To(Succeed())
		synctest.Wait()
		failing := engaging()
		failing.index = func(context.Context) error { return errors.New("no such kind") }
		g.Expect(p.AddProvider("failing", failing)).To(Succeed())
		synctest.Wait()
		g.Expect(p.IndexField(t.Context(), &corev1.Pod{}, "last", extract)).To(MatchError(`provider "failing": no such kind`))
		for _, f := range []*fake{first, second, failing} {
			g.Expect(f.indexed()).To(Equal([]string{"before", "after", "last"}), "once each, in order")
		}
		stop()
	})
}

func TestEngagementIsForwarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		engagement := multicluster.NewEngagement(nil)
		f := engaging()
		f.start = func(ctx context.Context, aware multicluster.Aware, _ int) error {
			_ = aware.Engage(multicluster.WithEngagement(ctx, engagement), "eu", f.cluster)
			<-ctx.Done()
			return nil
		}
		p := multi.New(multi.Options{})
		g.Expect(p.AddProvider("a", f)).To(Succeed())
		aware, stop := start(t, p)
		synctest.Wait()
		g.Expect(multicluster.EngagementFrom(aware.of("a#eu"))).To(BeIdenticalTo(engagement))
		stop()
	})
}
