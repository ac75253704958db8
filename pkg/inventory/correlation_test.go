// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

func TestCorrelationKeys(t *testing.T) {
	const uuid = "0a3e7d5c-5c0f-4f0e-9d3b-6f2f1b9d6f11"
	of := func(member, set, id, source string) *Profile {
		p := named("a")
		p.Labels = map[string]string{LabelMemberID: member}
		p.Annotations = map[string]string{AnnotationSource: source}
		for name, value := range map[string]string{PropertyClusterSet: set, PropertyClusterIDAlias: id} {
			p.Status.Properties = append(p.Status.Properties, v1alpha1.Property{Name: name, Value: value})
		}
		return p
	}
	for _, tc := range []struct {
		name string
		a, b *Profile
		same bool
	}{
		{"nothing is known", of("", "", "", ""), of("", "", "", ""), false},
		{"member ID", of("m", "", "", ""), of("m", "", "", ""), true},
		{"other member IDs", of("m", "", "", ""), of("n", "", "", ""), false},
		{"member ID of another hub", of("m", "", "", "0"), of("m", "", "", "1"), false},
		{"ClusterID in a ClusterSet", of("", "prod", "1", ""), of("", "prod", "1", ""), true},
		{"ClusterID in another ClusterSet", of("", "prod", "1", ""), of("", "test", "1", ""), false},
		{"ClusterID without a ClusterSet", of("", "", "1", ""), of("", "", "1", ""), false},
		{"a UUID without a ClusterSet, in another hub", of("", "", uuid, "0"), of("", "", uuid, "1"), true},
		{"a ClusterSet without a ClusterID", of("", "prod", "", ""), of("", "prod", "", ""), false},
		{"member ID is not a ClusterID", of(uuid, "", "", ""), of("", "", uuid, ""), false},
		{"one of both", of("m", "prod", "1", ""), of("m", "prod", "2", ""), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			same := slices.ContainsFunc(CorrelationKeys(tc.a), func(key string) bool {
				return slices.Contains(CorrelationKeys(tc.b), key)
			})
			NewWithT(t).Expect(same).To(Equal(tc.same))
		})
	}
}

// Profiles of two sources of a Merge are not of one trust domain, whatever their
// namespaces are. Those that were renamed are.
func TestTrustDomain(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	source := func(names ...string) Source {
		return SourceFunc(func(ctx context.Context, sink Sink) error {
			for _, name := range names {
				sink.Put(named(name))
			}
			sink.Synced()
			<-ctx.Done()
			return nil
		})
	}
	sink := untilSynced{newStore(), cancel}
	g.Expect(Merge(Rename(source("a", "b"), Prefix("x#")), source("c")).Run(ctx, sink)).To(Succeed())
	domains := map[string]string{}
	for _, p := range sink.profiles {
		domains[OriginalKey(p).Name] = TrustDomain(p)
	}
	g.Expect(domains["a"]).To(Equal(domains["b"]))
	g.Expect(domains["a"]).NotTo(Equal(domains["c"]))
}

// untilSynced is a store that calls a function when it is synced.
type untilSynced struct {
	*store
	call func()
}

func (s untilSynced) Synced() { s.call() }
