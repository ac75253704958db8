// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

var pod = &corev1.Pod{}

func TestIndexField(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		early, starting, late := newFake("a"), newFake("b"), newFake("c")
		starting.sync.shut()
		g.Expect(w.IndexField(t.Context(), pod, "one", nil)).To(Succeed())
		g.Expect(w.add("a", early)).To(Succeed())
		result := inBackground(func() error { return w.add("b", starting) })
		g.Expect(w.IndexField(t.Context(), pod, "two", nil)).To(Succeed())
		starting.sync.open()
		g.Expect(<-result).To(Succeed())
		g.Expect(w.add("c", late)).To(Succeed())

		for _, cl := range []*fakeCluster{early, starting, late} {
			g.Expect(cl.indexed()).To(HaveExactElements("one", "two"))
		}
	})
}

func TestIndexFieldRacesWithAdd(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		const n = 10
		all, want := make([]*fakeCluster, n), make([]string, n)
		for i := range n {
			all[i], want[i] = newFake("host"), fmt.Sprint(i)
			go func() { _ = w.add(multicluster.ClusterName(want[i]), all[i]) }()
			go func() { _ = w.IndexField(t.Context(), pod, want[i], nil) }()
		}
		synctest.Wait()
		for _, cl := range all {
			g.Expect(cl.indexed()).To(ConsistOf(want))
		}
	})
}

func TestClusterIsIndexedBeforeItIsEngaged(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		g.Expect(w.IndexField(t.Context(), pod, "one", nil)).To(Succeed())
		eu := newFake("eu")
		eu.index.shut()
		result := inBackground(func() error { return w.add("eu", eu) })
		g.Expect(w.engagements.list()).To(BeEmpty())
		eu.index.open()
		g.Expect(<-result).To(Succeed())
	})
}

func TestIndexFieldFailsInOneCluster(t *testing.T) {
	for _, tc := range []struct {
		name  string
		index string
		setUp func(*fakeCluster)
		after func(*world, *fakeCluster)
		err   OmegaMatcher
		took  time.Duration
	}{
		{
			name:  "it rejects the index",
			index: "refused",
			err:   And(MatchError(errFake), MatchError(ContainSubstring(`cluster "a"`))),
		},
		{
			name:  "it hangs",
			index: "one",
			setUp: func(cl *fakeCluster) { cl.index.shut() },
			after: func(_ *world, cl *fakeCluster) { cl.index.open() },
			err:   And(MatchError(context.DeadlineExceeded), MatchError(ContainSubstring(`cluster "a"`))),
			took:  10 * time.Second,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				g := NewWithT(t)
				a, b := newFake("a"), newFake("b")
				g.Expect(w.add("a", a)).To(Succeed())
				g.Expect(w.add("b", b)).To(Succeed())
				if tc.setUp != nil {
					tc.setUp(a)
				}
				began := time.Now()
				g.Expect(w.IndexField(t.Context(), pod, tc.index, nil)).To(tc.err)
				g.Expect(time.Since(began)).To(Equal(tc.took))
				g.Expect(b.indexed()).To(HaveExactElements(tc.index))
				g.Expect(w.Indexers()).To(HaveLen(1))
				if tc.after != nil {
					tc.after(w, a)
				}
			})
		})
	}
}

func TestClusterLeavesWhileItIsIndexed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		eu := newFake("eu")
		g.Expect(w.add("eu", eu)).To(Succeed())
		eu.index.shut()
		began := time.Now()
		result := inBackground(func() error { return w.IndexField(t.Context(), pod, "one", nil) })
		w.Remove("eu")
		g.Expect(<-result).To(Succeed())
		g.Expect(time.Since(began)).To(BeZero())
		eu.index.open()
	})
}

func TestIndexers(t *testing.T) {
	g := NewWithT(t)
	c := clusters.New[*fakeCluster]()
	extract := func(client.Object) []string { return []string{"value"} }
	g.Expect(c.IndexField(t.Context(), pod, "one", extract)).To(Succeed())
	g.Expect(c.IndexField(t.Context(), &corev1.Node{}, "two", extract)).To(Succeed())

	indexes := c.Indexers()
	g.Expect(indexes).To(HaveLen(2))
	g.Expect(indexes[0].Object).To(BeIdenticalTo(pod))
	g.Expect(indexes[0].Field).To(Equal("one"))
	g.Expect(indexes[0].Extractor(pod)).To(HaveExactElements("value"))
	g.Expect(indexes[1].Field).To(Equal("two"))
}

func TestIndexFieldTwice(t *testing.T) {
	ofKind := func(kind string) client.Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind})
		return u
	}
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	byLabel := func(o client.Object) []string { return []string{o.GetLabels()["label"]} }
	for _, tc := range []struct {
		name          string
		first, second client.Object
		field         string
		extract       client.IndexerFunc
		err           string
		indexes       int
	}{
		{name: "same field, same type", first: &corev1.Pod{}, second: &corev1.Pod{}, field: "one", extract: byName, indexes: 1},
		{name: "same field, same type, another function", first: &corev1.Pod{}, second: &corev1.Pod{}, field: "one", extract: byLabel, err: "already indexed by another function", indexes: 1},
		{name: "another field, same type", first: &corev1.Pod{}, second: &corev1.Pod{}, field: "two", extract: byName, indexes: 2},
		{name: "same field, another type", first: &corev1.Pod{}, second: &corev1.Node{}, field: "one", extract: byName, indexes: 2},
		{name: "same field, unstructured, same kind", first: ofKind("Car"), second: ofKind("Car"), field: "one", extract: byName, indexes: 1},
		{name: "same field, unstructured, another kind", first: ofKind("Car"), second: ofKind("Boat"), field: "one", extract: byName, indexes: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := clusters.New[*fakeCluster]()
			g.Expect(c.IndexField(t.Context(), tc.first, "one", byName)).To(Succeed())
			err := c.IndexField(t.Context(), tc.second, tc.field, tc.extract)
			if tc.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
			}
			g.Expect(c.Indexers()).To(HaveLen(tc.indexes))
		})
	}
}
