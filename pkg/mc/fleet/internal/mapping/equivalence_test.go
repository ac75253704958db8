// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Few names, so that several groups and versions have them in common.
var (
	someGroups   = []string{"", "apps", "storage", "storage.k8s.io", "batch", "policy"}
	someVersions = []string{"v1", "v2", "v1beta1"}
	someNames    = []string{"Pod", "Event", "Class", "Policy", "Endpoints", "PodList", "Status"}
)

// drawServer returns a server with random groups. A group has at most two versions,
// since controller-runtime orders more at random.
func drawServer(t *rapid.T) *server {
	s := &server{old: rapid.Bool().Draw(t, "old")}
	for _, group := range rapid.Permutation(someGroups).Draw(t, "groups")[:rapid.IntRange(1, 5).Draw(t, "n")] {
		g := fakeGroup{name: group}
		versions := []string{"v1"} // The core group has no other.
		if group != "" {
			versions = rapid.Permutation(someVersions).Draw(t, "versions")[:rapid.IntRange(1, 2).Draw(t, "n")]
		}
		for _, v := range versions {
			g.versions = append(g.versions, fakeVersion{name: v, resources: drawResources(t)})
		}
		s.groups = append(s.groups, g)
	}
	return s
}

// drawResources returns resources of distinct kinds, since the results of client-go
// are random if two have a name in common.
func drawResources(t *rapid.T) []metav1.APIResource {
	return rapid.SliceOfNDistinct(rapid.Custom(drawResource), 0, 4, func(r metav1.APIResource) string { return r.Kind }).Draw(t, "resources")
}

func drawResource(t *rapid.T) metav1.APIResource {
	kind := rapid.SampledFrom(someNames).Draw(t, "kind")
	r := resource(strings.ToLower(kind)+rapid.SampledFrom([]string{"s", "es", ""}).Draw(t, "plural"), kind)
	r.Namespaced = rapid.Bool().Draw(t, "namespaced")
	if rapid.Bool().Draw(t, "no singular") {
		r.SingularName = ""
	}
	return r
}

// drawLookup returns a lookup, and whether more than one group may match.
func drawLookup(t *rapid.T) (name string, do func(meta.RESTMapper) (any, error), open bool) {
	group := rapid.SampledFrom(append(someGroups, "other")).Draw(t, "group")
	kind := rapid.SampledFrom(append(someNames, "pod", "Missing")).Draw(t, "kind")
	versions := rapid.Permutation(append(someVersions, "v9")).Draw(t, "versions")[:rapid.IntRange(0, 2).Draw(t, "n")]
	if rapid.IntRange(0, 5).Draw(t, "no version") == 0 {
		versions = []string{""}
	}
	gk := schema.GroupKind{Group: group, Kind: kind}
	gvr := schema.GroupVersionResource{Group: group, Resource: strings.ToLower(kind) + rapid.SampledFrom([]string{"s", "es", ""}).Draw(t, "plural")}
	if len(versions) > 0 {
		gvr.Version = versions[0]
	}
	open = group == "" || group == "storage"
	switch i := rapid.IntRange(0, 6).Draw(t, "lookup"); i {
	case 0:
		return fmt.Sprint("KindFor ", gvr), func(m meta.RESTMapper) (any, error) { return m.KindFor(gvr) }, open
	case 1:
		return fmt.Sprint("KindsFor ", gvr), func(m meta.RESTMapper) (any, error) {
			found, err := m.KindsFor(gvr)
			return sorted(found), err
		}, false
	case 2:
		return fmt.Sprint("ResourceFor ", gvr), func(m meta.RESTMapper) (any, error) { return m.ResourceFor(gvr) }, open
	case 3:
		return fmt.Sprint("ResourcesFor ", gvr), func(m meta.RESTMapper) (any, error) {
			found, err := m.ResourcesFor(gvr)
			return sorted(found), err
		}, false
	case 4:
		return fmt.Sprint("RESTMapping ", gk, versions), func(m meta.RESTMapper) (any, error) {
			found, err := m.RESTMapping(gk, versions...)
			return values(found), err
		}, false
	case 5:
		return fmt.Sprint("RESTMappings ", gk, versions), func(m meta.RESTMapper) (any, error) {
			found, err := m.RESTMappings(gk, versions...)
			return sorted(values(found...)), err
		}, false
	default:
		return "ResourceSingularizer " + gvr.Resource, func(m meta.RESTMapper) (any, error) {
			// controller-runtime only uses what earlier lookups have read, and
			// does not fail if there is nothing.
			_, _ = m.KindFor(schema.GroupVersionResource{Resource: gvr.Resource})
			singular, err := m.ResourceSingularizer(gvr.Resource)
			if err == nil && singular == "" {
				return gvr.Resource, &meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Resource: gvr.Resource}}
			}
			return singular, err
		}, true
	}
}

func sorted[T any](all []T) []T {
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}

func values(mappings ...*meta.RESTMapping) []meta.RESTMapping {
	var all []meta.RESTMapping
	for _, m := range mappings {
		if m != nil {
			all = append(all, *m)
		}
	}
	return all
}

func TestEqualsDynamicRESTMapper(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawServer(t)
		ours := s.mapper(t, &store{})
		theirs, err := apiutil.NewDynamicRESTMapper(&rest.Config{Host: "http://fake", QPS: -1}, s.client())
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 8).Draw(t, "lookups") {
			name, do, open := drawLookup(t)
			_, _ = do(theirs) // Its first error may differ from later ones.
			want, wantErr := do(theirs)
			got, gotErr := do(ours)
			t.Log(name, got, gotErr)
			compare(t, name, got, gotErr, want, wantErr, open)
		}
	})
}

func compare(t *rapid.T, name string, got any, gotErr error, want any, wantErr error, open bool) {
	if open && (wantErr == nil || !meta.IsNoMatchError(wantErr)) && !meta.IsNoMatchError(gotErr) {
		return // controller-runtime prefers a random group.
	}
	if wantErr != nil || gotErr != nil {
		var discovery *apiutil.ErrResourceDiscoveryFailed
		if errors.As(wantErr, &discovery) && meta.IsNoMatchError(wantErr) && meta.IsNoMatchError(gotErr) {
			return
		}
		if fmt.Sprintf("%T %v", gotErr, gotErr) != fmt.Sprintf("%T %v", wantErr, wantErr) {
			t.Fatalf("%s: error is %T %v, want %T %v", name, gotErr, gotErr, wantErr, wantErr)
		}
		return
	}
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Fatalf("%s: %s, want %s", name, g, w)
	}
}
