// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

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
	g.Expect(describe(sink.profiles)).To(ConsistOf("/eu second "))
	first.Put(of("first"))
	g.Expect(describe(sink.profiles)).To(ConsistOf("/eu first "), "whichever arrived first")
	second.Put(of("second, changed"))
	g.Expect(describe(sink.profiles)).To(ConsistOf("/eu first "))
	first.Remove(Key{Name: "eu"})
	g.Expect(describe(sink.profiles)).To(ConsistOf("/eu second, changed "))
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
	g.Expect(describe(sink.profiles)).To(ConsistOf("p#europe  "))
	s.Remove(KeyOf(profile))
	s.Remove(KeyOf(profile))
	g.Expect(sink.profiles).To(BeEmpty())
}

func TestDedupeIdentity(t *testing.T) {
	const uid = "0a3e7d5c-5c0f-4f0e-9d3b-6f2f1b9d6f11"
	for _, tc := range []struct {
		name string
		a, b membership
		same bool
	}{
		{"same set and ID", membership{"s", "1"}, membership{"s", "1"}, true},
		{"another ID", membership{"s", "1"}, membership{"s", "2"}, false},
		{"another set", membership{"s", "1"}, membership{"t", "1"}, false},
		{"no ID", membership{"s", ""}, membership{"s", ""}, false},
		{"an ID without a set", membership{"", "1"}, membership{"", "1"}, false},
		{"a UUID without a set", membership{"", uid}, membership{"", uid}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			sink := newStore()
			s := newDedupeSink(sink)
			s.Put(identified("a", tc.a))
			s.Put(identified("b", tc.b))
			if tc.same {
				g.Expect(sink.profiles).To(HaveLen(1))
			} else {
				g.Expect(sink.profiles).To(HaveLen(2))
			}
		})
	}
}

func TestDedupeAlternates(t *testing.T) {
	g := NewWithT(t)
	cluster := membership{"s", "1"}
	at := func(name string, second int64) *Profile {
		p := identified(name, cluster)
		p.CreationTimestamp = metav1.Unix(second, 0)
		return p
	}
	sink := &eventLog{}
	store := newStore()
	s := newDedupeSink(both{sink, store})
	used := func() string {
		for key, profile := range store.profiles {
			return fmt.Sprint(key.Name, " ", Alternates(profile))
		}
		return ""
	}
	s.Put(at("old", 1))
	g.Expect(used()).To(Equal("old []"))
	s.Put(at("newer", 3))
	s.Put(identified("synthetic", cluster))
	g.Expect(used()).To(Equal("old [/newer /synthetic]"), "a new profile replaces none in use")

	sink.calls = nil
	s.Put(at("newer", 3))
	g.Expect(sink.calls).To(BeEmpty(), "heartbeats of alternates are not passed on")

	s.Remove(Key{Name: "old"})
	g.Expect(sink.calls).To(Equal([]string{"remove old", "put newer"}))
	g.Expect(used()).To(Equal("newer [/synthetic]"))

	sink.calls = nil
	s.Put(named("newer"))
	g.Expect(sink.calls).To(ConsistOf("put newer", "put synthetic"), "a profile without identity is a cluster of its own")

	s.Remove(Key{Name: "newer"})
	s.Remove(Key{Name: "synthetic"})
	g.Expect(store.profiles).To(BeEmpty())
	g.Expect(s.profiles).To(BeEmpty())
	g.Expect(s.clusters).To(BeEmpty(), "nothing is left behind")
	g.Expect(s.sent).To(BeEmpty())
}

// membership is a ClusterSet and the cluster's ID in it.
type membership struct{ set, id string }

func identified(name string, is membership) *Profile {
	p := named(name)
	for property, value := range map[string]string{PropertyClusterID: is.id, PropertyClusterSet: is.set} {
		if value != "" {
			p.Status.Properties = append(p.Status.Properties, v1alpha1.Property{Name: property, Value: value})
		}
	}
	return p
}

// both is a sink that passes calls on to two others.
type both struct{ a, b Sink }

func (s both) Put(p *Profile) { s.a.Put(p); s.b.Put(p) }
func (s both) Remove(key Key) { s.a.Remove(key); s.b.Remove(key) }
func (s both) Synced()        { s.a.Synced(); s.b.Synced() }
