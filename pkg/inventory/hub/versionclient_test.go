// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// versionServer serves some versions, and keeps the version of the last list and watch.
type versionServer struct {
	served          map[string]bool
	err             error // of v1alpha1
	listed, watched string
}

func (s *versionServer) client(version string) apiClient {
	answer := func() error {
		if version == "v1alpha1" && s.err != nil {
			return s.err
		}
		if !s.served[version] {
			return apierrors.NewNotFound(schema.GroupResource{}, "")
		}
		return nil
	}
	return apiClient{
		version: version,
		list: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			if err := answer(); err != nil {
				return nil, err
			}
			s.listed = version
			return &v1alpha1.ClusterProfileList{}, nil
		},
		watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			if err := answer(); err != nil {
				return nil, err
			}
			s.watched = version
			return watch.NewFake(), nil
		},
	}
}

func TestVersionOfListsAndWatches(t *testing.T) {
	g := NewWithT(t)
	s := &versionServer{served: map[string]bool{"v1alpha2": true}}
	c := &versionedClient{clients: []apiClient{s.client("v1alpha1"), s.client("v1alpha2")}, log: newVersionLog(profileResource)}
	list := func(options metav1.ListOptions) string {
		_, err := c.listAll(t.Context(), options)
		g.Expect(err).NotTo(HaveOccurred())
		return s.listed
	}
	watchIn := func(options metav1.ListOptions) string {
		w, err := c.watchAll(t.Context(), options)
		if apierrors.IsResourceExpired(err) {
			return "list again"
		}
		g.Expect(err).NotTo(HaveOccurred())
		w.Stop()
		return s.watched
	}
	g.Expect(list(metav1.ListOptions{})).To(Equal("v1alpha2"))
	g.Expect(watchIn(metav1.ListOptions{})).To(Equal("v1alpha2"))

	s.served["v1alpha1"] = true
	g.Expect(watchIn(metav1.ListOptions{})).To(Equal("v1alpha2"), "still served")
	_, err := c.list(t.Context(), metav1.ListOptions{Limit: 1}) // after a watch was cut
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(watchIn(metav1.ListOptions{})).To(Equal("list again"), "the objects are those of v1alpha2")
	g.Expect(list(metav1.ListOptions{})).To(Equal("v1alpha1"))
	g.Expect(watchIn(metav1.ListOptions{})).To(Equal("v1alpha1"))

	delete(s.served, "v1alpha1")
	g.Expect(watchIn(metav1.ListOptions{})).To(Equal("list again"))
	g.Expect(list(metav1.ListOptions{})).To(Equal("v1alpha2"))

	s.served["v1alpha1"] = true
	g.Expect(list(metav1.ListOptions{Continue: "x"})).To(Equal("v1alpha1"))
	g.Expect(watchIn(metav1.ListOptions{})).To(Equal("list again"), "pages of two versions")

	initial := true
	g.Expect(watchIn(metav1.ListOptions{SendInitialEvents: &initial})).To(Equal("v1alpha1"), "a watch that lists")
	g.Expect(watchIn(metav1.ListOptions{})).To(Equal("v1alpha1"))

	s.err = apierrors.NewUnauthorized("expired")
	_, err = c.listAll(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "only 404 leads to another version")
}
