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
)

func TestMergedSourcesFailAndSyncByThemselves(t *testing.T) {
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
		well := SourceFunc(func(ctx context.Context, sink Sink) error {
			sink.Put(named("early"))
			sink.Synced()
			<-ctx.Done()
			return nil
		})
		sink := &notes{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- Merge(broken, well).Run(ctx, sink) }()

		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(sink.told).To(Equal([]string{"put early"}), "one that is out holds up nothing but Synced")
		close(release)
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(sink.told).To(Equal([]string{"put early", "put late", "synced"}))
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
}

func TestMergeOfNothingIsSyncedAndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		sink := &notes{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Merge().Run(ctx, sink) }()
		synctest.Wait()
		g.Expect(sink.told).To(Equal([]string{"synced"}))
		g.Expect(ended).To(BeEmpty())
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
}

func TestThePlaceOfTheFirstSourceIsTakenWhenItsProfileGoes(t *testing.T) {
	g := NewWithT(t)
	sink := newRegister()
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
	g.Expect(describe(sink.profiles)).To(ConsistOf("/eu first "), "whichever came first in time")
	second.Put(of("second, changed"))
	g.Expect(describe(sink.profiles)).To(ConsistOf("/eu first "))
	first.Remove(Key{Name: "eu"})
	g.Expect(describe(sink.profiles)).To(ConsistOf("/eu second, changed "))
	second.Remove(Key{Name: "eu"})
	second.Remove(Key{Name: "never put"})
	g.Expect(sink.profiles).To(BeEmpty())
	g.Expect(table.profiles).To(BeEmpty(), "nothing is left behind")
}

func TestRenameGivesProfilesKeysOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	profile := &Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "eu", Annotations: map[string]string{"kept": "yes"}}}
	a, b := newRegister(), newRegister()
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
	g.Expect(profile.Annotations).To(HaveLen(1), "what is handed on is shared and not changed")

	same := newRegister()
	rename(same, func(string) string { return "" }).Put(profile)
	g.Expect(same.profiles).To(HaveKeyWithValue(KeyOf(profile), profile), "no name, no change")

	twice := newRegister()
	rename(rename(twice, Prefix("outer#")), Prefix("inner#")).Put(profile)
	for _, renamed := range twice.profiles {
		g.Expect(ClusterName(renamed)).To(Equal("outer#inner#fleet/eu"))
		g.Expect(OriginalKey(renamed)).To(Equal(KeyOf(profile)))
	}
}

func TestAProfileThatComesByAnotherNameLeavesUnderTheOldOne(t *testing.T) {
	g := NewWithT(t)
	sink := newRegister()
	s := &renameSink{sink: sink, rename: Prefix("p#"), renamed: map[Key]Key{}}
	profile := named("eu")
	s.Put(profile)
	s.Put(WithAnnotation(profile, AnnotationClusterName, "europe"))
	g.Expect(describe(sink.profiles)).To(ConsistOf("p#europe  "))
	s.Remove(KeyOf(profile))
	s.Remove(KeyOf(profile))
	g.Expect(sink.profiles).To(BeEmpty())
}

func TestWhichProfilesAreOfOneCluster(t *testing.T) {
	const uid = "0a3e7d5c-5c0f-4f0e-9d3b-6f2f1b9d6f11"
	for _, tc := range []struct {
		name string
		a, b identity
		same bool
	}{
		{"same set and ID", identity{"s", "1"}, identity{"s", "1"}, true},
		{"another ID", identity{"s", "1"}, identity{"s", "2"}, false},
		{"another set, where the ID means another cluster", identity{"s", "1"}, identity{"t", "1"}, false},
		{"no ID", identity{"s", ""}, identity{"s", ""}, false},
		{"without a set an ID says nothing", identity{"", "1"}, identity{"", "1"}, false},
		{"unless it is unique everywhere", identity{"", uid}, identity{"", uid}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			sink := newRegister()
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

func TestAlternatesAreShownAndTakeOver(t *testing.T) {
	g := NewWithT(t)
	cluster := identity{"s", "1"}
	at := func(name string, second int64) *Profile {
		p := identified(name, cluster)
		p.CreationTimestamp = metav1.Unix(second, 0)
		return p
	}
	sink := &notes{}
	register := newRegister()
	s := newDedupeSink(both{sink, register})
	used := func() string {
		for key, profile := range register.profiles {
			return fmt.Sprint(key.Name, " ", Alternates(profile))
		}
		return ""
	}
	s.Put(at("old", 1))
	g.Expect(used()).To(Equal("old []"))
	s.Put(at("newer", 3))
	s.Put(identified("synthetic", cluster))
	g.Expect(used()).To(Equal("old [/newer /synthetic]"), "who comes later takes the place of no other")

	sink.told = nil
	s.Put(at("newer", 3))
	g.Expect(sink.told).To(BeEmpty(), "heartbeats of alternates concern nobody")

	s.Remove(Key{Name: "old"})
	g.Expect(sink.told).To(Equal([]string{"remove old", "put newer"}))
	g.Expect(used()).To(Equal("newer [/synthetic]"))

	sink.told = nil
	s.Put(named("newer"))
	g.Expect(sink.told).To(ConsistOf("put newer", "put synthetic"), "without its identity it is a cluster by itself")

	s.Remove(Key{Name: "newer"})
	s.Remove(Key{Name: "synthetic"})
	g.Expect(register.profiles).To(BeEmpty())
	g.Expect(s.profiles).To(BeEmpty())
	g.Expect(s.clusters).To(BeEmpty(), "nothing is left behind")
	g.Expect(s.told).To(BeEmpty())
}

func identified(name string, is identity) *Profile {
	p := named(name)
	for property, value := range map[string]string{PropertyClusterID: is.id, PropertyClusterSet: is.set} {
		if value != "" {
			p.Status.Properties = append(p.Status.Properties, v1alpha1.Property{Name: property, Value: value})
		}
	}
	return p
}

// both is a sink that tells two others.
type both struct{ a, b Sink }

func (s both) Put(p *Profile) { s.a.Put(p); s.b.Put(p) }
func (s both) Remove(key Key) { s.a.Remove(key); s.b.Remove(key) }
func (s both) Synced()        { s.a.Synced(); s.b.Synced() }
