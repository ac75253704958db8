// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

var pods = schema.GroupResource{Resource: "pods"}

func newDraft(t interface{ Fatal(...any) }, namespace, name string) *Draft {
	d, err := NewDraft(namespace, name, nil, map[string]any{
		"apiVersion": "v1", "metadata": map[string]any{"namespace": namespace, "name": name},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func keys(records []*Record) string {
	var out []string
	for _, r := range records {
		out = append(out, r.Key())
	}
	return strings.Join(out, " ")
}

func TestDraft(t *testing.T) {
	g := NewWithT(t)
	object := map[string]any{"apiVersion": "v1", "metadata": map[string]any{"name": "a", "resourceVersion": "old"}}
	d, err := NewDraft("", "a", nil, object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(d.Preview(7).JSON)).To(MatchJSON(`{"apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"}}`))
	g.Expect(string(d.Preview(123).JSON)).To(ContainSubstring(`"123"`))
	g.Expect(object["metadata"]).To(HaveKeyWithValue("resourceVersion", "old"), "the object is left alone")
	_, err = NewDraft("", "a", nil, map[string]any{})
	g.Expect(err).To(HaveOccurred())
}

func TestConflictingWrites(t *testing.T) {
	g := NewWithT(t)
	s := New(10)
	a, err := s.Put(pods, nil, newDraft(t, "ns", "a"))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.Put(pods, nil, newDraft(t, "ns", "a"))
	g.Expect(err).To(MatchError(ErrConflict), "it is there already")
	b, err := s.Put(pods, a, newDraft(t, "ns", "a"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.Revision).To(Equal(a.Revision + 1))
	_, err = s.Put(pods, a, newDraft(t, "ns", "a"))
	g.Expect(err).To(MatchError(ErrConflict), "it has changed")
	_, err = s.Delete(pods, a, newDraft(t, "ns", "a"))
	g.Expect(err).To(MatchError(ErrConflict))
	gone, err := s.Delete(pods, b, newDraft(t, "ns", "a"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gone.Revision).To(Equal(b.Revision+1), "a deletion is a write")
	_, err = s.Put(pods, b, newDraft(t, "ns", "a"))
	g.Expect(err).To(MatchError(ErrConflict), "it is gone")
	g.Expect(s.Get(pods, "ns", "a")).To(BeNil())
}

func TestListNamespace(t *testing.T) {
	g := NewWithT(t)
	s := New(10)
	for _, key := range []string{"b/x", "a/y", "a/x", "a-b/z", "ab/q"} {
		namespace, name, _ := strings.Cut(key, "/")
		_, err := s.Put(pods, nil, newDraft(t, namespace, name))
		g.Expect(err).NotTo(HaveOccurred())
	}
	all, revision := s.List(pods, "")
	g.Expect(keys(all)).To(Equal("a-b/z a/x a/y ab/q b/x"))
	g.Expect(revision).To(Equal(s.Revision()))
	some, _ := s.List(pods, "a")
	g.Expect(keys(some)).To(Equal("a/x a/y"))
	none, _ := s.List(pods, "c")
	g.Expect(none).To(BeEmpty())
	g.Expect(s.Empty("a")).To(BeFalse())
	g.Expect(s.Empty("c")).To(BeTrue())
}

func TestHistoryReaders(t *testing.T) {
	t.Run("are woken by the next write to their resource", func(t *testing.T) {
		g := NewWithT(t)
		s := New(10)
		events, upTo, changed, err := s.Since(pods, s.Revision())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(events).To(BeEmpty())
		_, err = s.Put(schema.GroupResource{Resource: "nodes"}, nil, newDraft(t, "", "n"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(changed).NotTo(BeClosed())
		_, err = s.Put(pods, nil, newDraft(t, "ns", "a"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(changed).To(BeClosed())
		events, _, _, err = s.Since(pods, upTo)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(events).To(HaveLen(1))
	})
	t.Run("get ErrExpired when it no longer reaches back to them", func(t *testing.T) {
		g := NewWithT(t)
		s := New(4)
		start := s.Revision()
		for i := range 20 {
			_, err := s.Put(pods, nil, newDraft(t, "ns", fmt.Sprint(i)))
			g.Expect(err).NotTo(HaveOccurred())
		}
		_, _, _, err := s.Since(pods, start)
		g.Expect(err).To(MatchError(ErrExpired))
		_, err = s.ListAt(pods, "", start)
		g.Expect(err).To(MatchError(ErrExpired))
		events, _, _, err := s.Since(pods, s.Revision()-4)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(events).To(HaveLen(4))
	})
	t.Run("list again after compaction, also in resources without a write", func(t *testing.T) {
		g := NewWithT(t)
		s := New(10)
		before := s.Revision()
		_, err := s.Put(pods, nil, newDraft(t, "ns", "a"))
		g.Expect(err).NotTo(HaveOccurred())
		s.Compact()
		for _, resource := range []schema.GroupResource{pods, {Resource: "nodes"}} {
			_, err = s.ListAt(resource, "", before)
			g.Expect(err).To(MatchError(ErrExpired))
			_, _, _, err = s.Since(resource, before)
			g.Expect(err).To(MatchError(ErrExpired))
			_, _, _, err = s.Since(resource, s.Revision())
			g.Expect(err).NotTo(HaveOccurred())
		}
	})
}

// TestHistoryIsConsistent writes at random and remembers every state: the
// store must be able to list each as it was, and the events between two states
// must lead from one to the other.
func TestHistoryIsConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(rapid.IntRange(1, 20).Draw(t, "history"))
		past := map[uint64]string{s.Revision(): ""}
		for range rapid.IntRange(0, 60).Draw(t, "writes") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
			current := s.Get(pods, "ns", name)
			var err error
			if current != nil && rapid.Bool().Draw(t, "delete") {
				_, err = s.Delete(pods, current, newDraft(t, "ns", name))
			} else {
				_, err = s.Put(pods, current, newDraft(t, "ns", name))
			}
			if err != nil {
				t.Fatal(err)
			}
			records, revision := s.List(pods, "")
			past[revision] = states(records)
		}
		for revision, want := range past {
			records, err := s.ListAt(pods, "", revision)
			events, _, _, sinceErr := s.Since(pods, revision)
			if errors.Is(err, ErrExpired) != errors.Is(sinceErr, ErrExpired) {
				t.Fatalf("at %d: list says %v, events say %v", revision, err, sinceErr)
			}
			if err != nil {
				continue
			}
			if got := states(records); got != want {
				t.Fatalf("at %d: got %q, want %q", revision, got, want)
			}
			if got, want := states(replay(records, events)), past[s.Revision()]; got != want {
				t.Fatalf("events since %d lead to %q, want %q", revision, got, want)
			}
		}
	})
}

func states(records []*Record) string {
	var out []string
	for _, r := range records {
		out = append(out, fmt.Sprintf("%s@%d", r.Key(), r.Revision))
	}
	return strings.Join(out, " ")
}

func replay(records []*Record, events []Event) []*Record {
	out := slices.Clone(records)
	for _, event := range events {
		out = slices.DeleteFunc(out, func(r *Record) bool { return r.Key() == event.Object.Key() })
		if !event.Deleted {
			out = append(out, event.Object)
		}
	}
	slices.SortFunc(out, func(a, b *Record) int { return strings.Compare(a.Key(), b.Key()) })
	return out
}
