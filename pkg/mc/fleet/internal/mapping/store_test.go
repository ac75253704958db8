// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// size returns the number of documents, resources and catalogs.
func (s *store) size() [3]int { return [3]int{s.documents.len(), s.resources.len(), s.catalogs.len()} }

func (i *interned[T]) len() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.values)
}

func TestEqualClustersShareAll(t *testing.T) {
	for _, old := range []bool{false, true} {
		g := NewWithT(t)
		in := &store{}
		var first *Mapper
		for range 10 {
			m := kubernetes(old).mapper(t, in)
			g.Expect(has(m, deployment)).To(Succeed())
			if first == nil {
				first = m
			}
			g.Expect(m.known.Load().catalog).To(BeIdenticalTo(first.known.Load().catalog))
		}
	}
}

func TestKindOfOneCluster(t *testing.T) {
	g := NewWithT(t)
	in := &store{}
	servers := []*server{kubernetes(false), kubernetes(false), kubernetes(false)}
	mappers := make([]*Mapper, len(servers))
	for i, s := range servers {
		mappers[i] = s.mapper(t, in)
		g.Expect(has(mappers[i], deployment)).To(Succeed())
	}
	common := mappers[0].known.Load()
	before := in.resources.len()

	servers[1].set("example.com", served)
	g.Expect(has(mappers[1], widget)).To(Succeed())
	g.Expect(in.resources.len()).To(Equal(before+1), "all others are shared")
	for _, i := range []int{0, 2} {
		g.Expect(mappers[i].known.Load().catalog).To(BeIdenticalTo(common.catalog))
		g.Expect(has(mappers[i], widget)).To(noMatch)
		g.Expect(mappers[i].known.Load().catalog).To(BeIdenticalTo(common.catalog))
	}

	servers[1].remove("example.com")
	g.Expect(has(mappers[1], gadget)).To(noMatch)
	g.Expect(mappers[1].known.Load().catalog).To(BeIdenticalTo(common.catalog), "it is equal to the others again")
}

func TestIrrelevantFieldsAreIgnored(t *testing.T) {
	g := NewWithT(t)
	in := &store{}
	list := []metav1.APIResource{resource("widgets", "Widget"), resource("gadgets", "Gadget"), resource("things", "Thing")}
	var catalogs []*catalog
	for i := range 3 {
		other := slices.Clone(list)
		slices.Reverse(other[:i])
		for j := range other {
			other[j].Verbs = metav1.Verbs{fmt.Sprint(i)}
		}
		s := kubernetes(false)
		s.set("example.com", fakeVersion{name: "v1", resources: other})
		m := s.mapper(t, in)
		g.Expect(has(m, widget)).To(Succeed())
		catalogs = append(catalogs, m.known.Load().catalog)
	}
	g.Expect(catalogs).To(HaveEach(BeIdenticalTo(catalogs[0])))

	s := kubernetes(false)
	clusterScoped := slices.Clone(list)
	clusterScoped[0].Namespaced = false
	s.set("example.com", fakeVersion{name: "v1", resources: clusterScoped})
	m := s.mapper(t, in)
	g.Expect(has(m, widget)).To(Succeed())
	g.Expect(m.known.Load().catalog).NotTo(BeIdenticalTo(catalogs[0]))
}

func TestUnusedValuesAreFreed(t *testing.T) {
	g := NewWithT(t)
	in := &store{}
	kept, removed := kubernetes(false), kubernetes(false)
	removed.set("example.com", served)
	keptMapper := kept.mapper(t, in)
	g.Expect(has(keptMapper, deployment)).To(Succeed())
	before := in.size()

	removedMapper := removed.mapper(t, in)
	g.Expect(has(removedMapper, widget)).To(Succeed())
	g.Expect(in.size()).NotTo(Equal(before))
	runtime.KeepAlive(removedMapper)
	size := func() [3]int {
		runtime.GC()
		return in.size()
	}
	before[2] = 1 // The empty catalog is freed, too.
	g.Eventually(size).Should(Equal(before))
	g.Expect(has(keptMapper, deployment)).To(Succeed())

	runtime.KeepAlive(keptMapper)
	g.Eventually(size).Should(Equal([3]int{}))
}

func TestInvalidDocument(t *testing.T) {
	g := NewWithT(t)
	in := &store{}
	for _, path := range []string{corePath, groupsPath} {
		for _, contentType := range []string{"application/json", accept} {
			_, err := in.document(path, contentType, []byte("<html>"))
			g.Expect(err).To(MatchError(ContainSubstring("cannot decode " + path)))
		}
	}
	g.Expect(in.size()).To(Equal([3]int{}))
}
