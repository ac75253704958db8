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

// question is what a lookup is about. Either kind or resource is set.
type question struct {
	group, kind, resource string
	versions              string // separated by commas; "" is for all
}

func about(r schema.GroupVersionResource) question {
	return question{group: r.Group, resource: r.Resource, versions: join(r.Version)}
}

func aboutKind(kind schema.GroupKind, versions []string) question {
	return question{group: kind.Group, kind: kind.Kind, versions: join(versions...)}
}

// join leaves out what mappers take for no version.
func join(versions ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(versions), func(v string) bool {
		return v == "" || v == runtime.APIVersionInternal
	}), ",")
}

func (q question) concerns(version string) bool {
	return q.versions == "" || slices.Contains(strings.Split(q.versions, ","), version)
}

// knowledge is what a mapper knows of its cluster. It is immutable.
type knowledge struct {
	documents []*document
	// read is the number of the request that led to the documents, 0 if there
	// was none.
	read int64
	// besides has answers for group versions of which the documents do not
	// tell.
	besides map[schema.GroupVersion]answer
	catalog *catalog
}

// answer is what is known of one group version. Its resources are nil if it
// has none, or never had any when it could be asked; what it had before an
// error stays known.
type answer struct {
	resources *resources
	read      int64 // the number of the request
	asked     bool  // rather than taken over from earlier documents
	err       error // if the latest request failed
}

// topic is what a request to the cluster is about: the resources of a group, or
// all that its discovery documents tell.
type topic struct {
	documents bool
	group     string
}

// next returns what to ask the cluster, which has not been asked since, in
// order to answer the question. Again means that it was asked before.
func (k *knowledge) next(q question, since int64) (about topic, again, ok bool) {
	documents, group := topic{documents: true}, topic{group: q.group}
	if k.read == 0 {
		return documents, false, true
	}
	untold := k.untold(q)
	if slices.ContainsFunc(untold, func(gv schema.GroupVersion) bool { return !k.besides[gv].asked }) {
		return group, false, true
	}
	if k.read <= since {
		return documents, true, true
	}
	if slices.ContainsFunc(untold, func(gv schema.GroupVersion) bool { return k.besides[gv].read <= since }) {
		return group, true, true
	}
	return topic{}, false, false
}

// untold returns the group versions that may answer the question and of which
// the documents do not tell more than that they exist.
func (k *knowledge) untold(q question) []schema.GroupVersion {
	var untold []schema.GroupVersion
	k.each(func(gv schema.GroupVersion, told *resources) {
		if gv.Group == q.group && told == nil && q.concerns(gv.Version) {
			untold = append(untold, gv)
		}
	})
	return untold
}

func (k *knowledge) each(do func(gv schema.GroupVersion, told *resources)) {
	for _, document := range k.documents {
		for _, g := range document.groups {
			for _, v := range g.versions {
				do(schema.GroupVersion{Group: g.name, Version: v.name}, v.resources)
			}
		}
	}
}

// explain returns why there is no match: because a group version that may have
// one could not be asked, or else for the reason that the mapper gave.
func (k *knowledge) explain(q question, noMatch error) error {
	failed := apiutil.ErrResourceDiscoveryFailed{}
	for _, gv := range k.untold(q) {
		if err := k.besides[gv].err; err != nil {
			failed[gv] = err
		}
	}
	if len(failed) > 0 {
		return &failed
	}
	return noMatch
}

// withDocuments returns what is known after documents were read. What earlier
// ones told of a group version stays known where these tell nothing.
func (k *knowledge) withDocuments(documents []*document, read int64) *knowledge {
	next := &knowledge{documents: documents, read: read, besides: map[schema.GroupVersion]answer{}}
	before := map[schema.GroupVersion]*resources{}
	k.each(func(gv schema.GroupVersion, told *resources) { before[gv] = told })
	next.each(func(gv schema.GroupVersion, told *resources) {
		if told != nil {
			return
		}
		if known, ok := k.besides[gv]; ok {
			next.besides[gv] = known
		} else if before[gv] != nil {
			next.besides[gv] = answer{resources: before[gv], read: k.read}
		}
	})
	return next
}

// withAnswers returns what is known after group versions were asked.
func (k *knowledge) withAnswers(answers map[schema.GroupVersion]answer) *knowledge {
	next := &knowledge{documents: k.documents, read: k.read, besides: map[schema.GroupVersion]answer{}}
	k.each(func(gv schema.GroupVersion, told *resources) {
		if told != nil {
			return
		}
		known, ok := answers[gv]
		if !ok {
			known, ok = k.besides[gv]
		} else if known.err != nil {
			known.resources = k.besides[gv].resources
		}
		if ok {
			next.besides[gv] = known
		}
	})
	return next
}
