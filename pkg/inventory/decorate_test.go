// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/inventory/internal/metadata"
)

func TestMergeIsolatesFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		release := make(chan struct{})
		broken := SourceFunc(func(ctx context.Context, sink Sink) error {
			select {
			case <-release:
			default:
				return errors.New("outage")
			}
			sink.Put(named("late"))
			sink.Synced()
			<-ctx.Done()
			return nil
		})
		healthy := SourceFunc(func(ctx context.Context, sink Sink) error {
			sink.Put(named("early"))
			sink.Synced()
			<-ctx.Done()
			return nil
		})
		sink := &eventLog{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- Merge(broken, healthy).Run(ctx, sink) }()

		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(sink.calls).To(Equal([]string{"put early"}), "a failing source delays only Synced")
		close(release)
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(sink.calls).To(Equal([]string{"put early", "put late", "synced"}))
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
}

func TestMergeWithoutSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		sink := &eventLog{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Merge().Run(ctx, sink) }()
		synctest.Wait()
		g.Expect(sink.calls).To(Equal([]string{"synced"}))
		g.Expect(ended).To(BeEmpty())
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
}

func TestMergePrefersFirstSource(t *testing.T) {
	g := NewWithT(t)
	sink := newStore()
	table := &mergeTable{
		log: logr.Discard(), sources: make([]Source, 2), sink: sink,
		profiles: map[Key][]*Profile{}, unsynced: 2,
	}
	first, second := &mergeSink{table: table, source: 0}, &mergeSink{table: table, source: 1}
	of := func(source string) *Profile {
		p := named("eu")
		p.Labels = map[string]string{"version": source}
		return p
	}
	second.Put(of("second"))
	g.Expect(describe(sink.profiles)).To(ConsistOf("/eu second"))
	first.Put(of("first"))
	g.Expect(describe(sink.profiles)).To(ConsistOf("/eu first"), "whichever arrived first")
	second.Put(of("second, changed"))
	g.Expect(describe(sink.profiles)).To(ConsistOf("/eu first"))
	first.Remove(Key{Name: "eu"})
	g.Expect(describe(sink.profiles)).To(ConsistOf("/eu second, changed"))
	second.Remove(Key{Name: "eu"})
	second.Remove(Key{Name: "never put"})
	g.Expect(sink.profiles).To(BeEmpty())
	g.Expect(table.profiles).To(BeEmpty(), "nothing is left behind")
}

func TestRenameGivesUniqueKeys(t *testing.T) {
	g := NewWithT(t)
	profile := &Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "eu", Annotations: map[string]string{"kept": "yes"}}}
	a, b := newStore(), newStore()
	rename := func(sink Sink, rename func(string) string) *renameSink {
		return &renameSink{sink: sink, rename: rename, renamed: map[Key]Key{}}
	}
	rename(a, Prefix("a#")).Put(profile)
	rename(b, Prefix("b#")).Put(profile)
	for key, renamed := range a.profiles {
		g.Expect(ClusterName(renamed)).To(Equal("a#fleet/eu"))
		g.Expect(key.Namespace).To(Equal("fleet"))
		g.Expect(b.profiles).NotTo(HaveKey(key))
		g.Expect(OriginalKey(renamed)).To(Equal(KeyOf(profile)))
		g.Expect(renamed.Annotations).To(HaveKeyWithValue("kept", "yes"))
	}
	g.Expect(profile.Annotations).To(HaveLen(1), "the argument is shared and not changed")

	same := newStore()
	rename(same, func(string) string { return "" }).Put(profile)
	g.Expect(same.profiles).To(HaveKeyWithValue(KeyOf(profile), profile), "no name, no change")

	twice := newStore()
	rename(rename(twice, Prefix("outer#")), Prefix("inner#")).Put(profile)
	for _, renamed := range twice.profiles {
		g.Expect(ClusterName(renamed)).To(Equal("outer#inner#fleet/eu"))
		g.Expect(OriginalKey(renamed)).To(Equal(KeyOf(profile)))
	}
}

func TestRenameFollowsNameChanges(t *testing.T) {
	g := NewWithT(t)
	sink := newStore()
	s := &renameSink{sink: sink, rename: Prefix("p#"), renamed: map[Key]Key{}}
	profile := named("eu")
	s.Put(profile)
	s.Put(metadata.WithAnnotation(profile, AnnotationClusterName, "europe"))
	g.Expect(describe(sink.profiles)).To(ConsistOf("p#europe "))
	s.Remove(KeyOf(profile))
	s.Remove(KeyOf(profile))
	g.Expect(sink.profiles).To(BeEmpty())
}
