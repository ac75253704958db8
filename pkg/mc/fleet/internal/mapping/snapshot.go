// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// query is what a lookup searches for. Either kind or resource is set.
type query struct {
	group, kind, resource string
	versions              string // separated by commas; "" is for all
}

func queryOf(r schema.GroupVersionResource) query {
	return query{group: r.Group, resource: r.Resource, versions: join(r.Version)}
}

func kindQuery(kind schema.GroupKind, versions []string) query {
	return query{group: kind.Group, kind: kind.Kind, versions: join(versions...)}
}

// join joins versions, without those that mappers ignore.
func join(versions ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(versions), func(v string) bool {
		return v == "" || v == runtime.APIVersionInternal
	}), ",")
}

// matches reports whether the query is for the version.
func (q query) matches(version string) bool {
	return q.versions == "" || slices.Contains(strings.Split(q.versions, ","), version)
}

// snapshot is what a mapper knows about its cluster. It is immutable.
type snapshot struct {
	documents []*document
	// read is the number of the request for the documents, 0 if there was none.
	read int64
	// extra has the group versions that the documents list without resources.
	extra   map[schema.GroupVersion]response
	catalog *catalog
}

// response is what is known about one group version.
type response struct {
	// resources are nil if there are none or no request has succeeded. They stay
	// after an error.
	resources *resources
	read      int64 // the number of the request
	requested bool  // not taken from earlier documents
	err       error // if the latest request failed
}

// target is what is requested from the cluster: its discovery documents, or the
// resources of one group.
type target struct {
	documents bool
	group     string
}

// next returns what to request in order to answer the query, and whether it was
// requested before. It is not ok if everything was requested after the request with
// the number since.
func (s *snapshot) next(q query, since int64) (t target, again, ok bool) {
	documents, group := target{documents: true}, target{group: q.group}
	if s.read == 0 {
		return documents, false, true
	}
	unresolved := s.unresolved(q)
	if slices.ContainsFunc(unresolved, func(gv schema.GroupVersion) bool { return !s.extra[gv].requested }) {
		return group, false, true
	}
	if s.read <= since {
		return documents, true, true
	}
	if slices.ContainsFunc(unresolved, func(gv schema.GroupVersion) bool { return s.extra[gv].read <= since }) {
		return group, true, true
	}
	return target{}, false, false
}

// unresolved returns the group versions that may answer the query and that the
// documents list without resources.
func (s *snapshot) unresolved(q query) []schema.GroupVersion {
	var unresolved []schema.GroupVersion
	s.each(func(gv schema.GroupVersion, listed *resources) {
		if gv.Group == q.group && listed == nil && q.matches(gv.Version) {
			unresolved = append(unresolved, gv)
		}
	})
	return unresolved
}

// each calls the function for each group version of the documents.
func (s *snapshot) each(do func(gv schema.GroupVersion, listed *resources)) {
	for _, document := range s.documents {
		for _, g := range document.groups {
			for _, v := range g.versions {
				do(schema.GroupVersion{Group: g.name, Version: v.name}, v.resources)
			}
		}
	}
}

// matchError returns why there is no match: the errors of group versions that may
// have one, or the error of the mapper.
func (s *snapshot) matchError(q query, noMatch error) error {
	failed := apiutil.ErrResourceDiscoveryFailed{}
	for _, gv := range s.unresolved(q) {
		if err := s.extra[gv].err; err != nil {
			failed[gv] = err
		}
	}
	if len(failed) > 0 {
		return &failed
	}
	return noMatch
}

// withDocuments returns the snapshot after documents were read. The resources of
// group versions that these documents list without resources stay known.
func (s *snapshot) withDocuments(documents []*document, read int64) *snapshot {
	next := &snapshot{documents: documents, read: read, extra: map[schema.GroupVersion]response{}}
	before := map[schema.GroupVersion]*resources{}
	s.each(func(gv schema.GroupVersion, listed *resources) { before[gv] = listed })
	next.each(func(gv schema.GroupVersion, listed *resources) {
		if listed != nil {
			return
		}
		if known, ok := s.extra[gv]; ok {
			next.extra[gv] = known
		} else if before[gv] != nil {
			next.extra[gv] = response{resources: before[gv], read: s.read}
		}
	})
	return next
}

// withResponses returns the snapshot after group versions were requested.
func (s *snapshot) withResponses(responses map[schema.GroupVersion]response) *snapshot {
	next := &snapshot{documents: s.documents, read: s.read, extra: map[schema.GroupVersion]response{}}
	s.each(func(gv schema.GroupVersion, listed *resources) {
		if listed != nil {
			return
		}
		known, ok := responses[gv]
		if !ok {
			known, ok = s.extra[gv]
		} else if known.err != nil {
			known.resources = s.extra[gv].resources
		}
		if ok {
			next.extra[gv] = known
		}
	})
	return next
}
