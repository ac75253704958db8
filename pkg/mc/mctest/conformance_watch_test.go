// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func (s *server) watch(t *testing.T, namespace string, o metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := s.clientset.CoreV1().ConfigMaps(namespace).Watch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// describeEvent returns the type and the object's name.
func describeEvent(t *testing.T, event watch.Event) string {
	t.Helper()
	return string(event.Type) + " " + nameOf(t, event)
}

var watchBehaviours = []behaviour{
	{"a watch resumes after the resource version of a list", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 2)
		list, err := s.clientset.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		missed := s.configMap(t, namespace, "missed")
		w := s.watch(t, namespace, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		event := next(t, w)
		g.Expect(describeEvent(t, event)).To(Equal("ADDED missed"))
		g.Expect(event.Object.(*corev1.ConfigMap)).To(HaveField("ResourceVersion", missed.ResourceVersion))
		missed.Data["key"] = "other"
		g.Expect(s.client.Update(t.Context(), missed)).To(Succeed())
		g.Expect(describeEvent(t, next(t, w))).To(Equal("MODIFIED missed"))
		g.Expect(s.client.Delete(t.Context(), missed)).To(Succeed())
		event = next(t, w)
		g.Expect(describeEvent(t, event)).To(Equal("DELETED missed"))
		g.Expect(event.Object.(*corev1.ConfigMap).ResourceVersion).NotTo(Equal(missed.ResourceVersion))
		g.Expect(event.Object.(*corev1.ConfigMap).Data).To(HaveKeyWithValue("key", "other"))
	}},
	{"a watch from no resource version begins with all objects", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 2)
		w := s.watch(t, namespace, metav1.ListOptions{})
		g.Expect([]string{describeEvent(t, next(t, w)), describeEvent(t, next(t, w))}).To(ConsistOf("ADDED cm-0", "ADDED cm-1"))
		s.configMap(t, namespace, "new")
		g.Expect(describeEvent(t, next(t, w))).To(Equal("ADDED new"))
	}},
	{"a watch sends events of its own namespace only", func(t *testing.T, s *server) {
		one, two := s.namespace(t), s.namespace(t)
		w := s.watch(t, one, metav1.ListOptions{})
		s.configMap(t, two, "elsewhere")
		s.configMap(t, one, "here")
		NewWithT(t).Expect(describeEvent(t, next(t, w))).To(Equal("ADDED here"))
	}},
	{"a streamed list ends with an annotated bookmark", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 2)
		w := s.watch(t, namespace, metav1.ListOptions{
			SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		g.Expect(describeEvent(t, next(t, w))).To(Equal("ADDED cm-0"))
		g.Expect(describeEvent(t, next(t, w))).To(Equal("ADDED cm-1"))
		event := next(t, w)
		g.Expect(event.Type).To(Equal(watch.Bookmark))
		bookmark := event.Object.(*corev1.ConfigMap)
		g.Expect(bookmark.Annotations).To(HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
		g.Expect(bookmark.ResourceVersion).NotTo(BeEmpty())

		s.configMap(t, namespace, "later")
		g.Expect(describeEvent(t, next(t, s.watch(t, namespace, metav1.ListOptions{ResourceVersion: bookmark.ResourceVersion})))).To(Equal("ADDED later"))
	}},
	{"a streamed list of nothing is a bookmark", func(t *testing.T, s *server) {
		w := s.watch(t, s.namespace(t), metav1.ListOptions{
			SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		NewWithT(t).Expect(next(t, w).Type).To(Equal(watch.Bookmark))
	}},
	{"a streamed list needs a match", func(t *testing.T, s *server) {
		_, err := s.clientset.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true)})
		NewWithT(t).Expect(err).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	}},
	{"an object is added when it becomes selected, and deleted when it no longer is", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		cm := s.configMap(t, namespace, "a")
		w := s.watch(t, namespace, metav1.ListOptions{LabelSelector: "x=y"})
		cm.Labels = map[string]string{"x": "y"}
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		g.Expect(describeEvent(t, next(t, w))).To(Equal("ADDED a"))
		cm.Data["key"] = "other"
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		g.Expect(describeEvent(t, next(t, w))).To(Equal("MODIFIED a"))
		cm.Labels["x"], cm.Data["key"] = "z", "third"
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		event := next(t, w)
		g.Expect(describeEvent(t, event)).To(Equal("DELETED a"))
		gone := event.Object.(*corev1.ConfigMap)
		g.Expect(gone.ResourceVersion).To(Equal(cm.ResourceVersion))
		g.Expect(gone.Labels).To(HaveKeyWithValue("x", "y"))
		g.Expect(gone.Data).To(HaveKeyWithValue("key", "other"))
	}},
	{"one object can be watched by name", func(t *testing.T, s *server) {
		namespace := s.numbered(t, 3)
		w := s.watch(t, namespace, metav1.ListOptions{FieldSelector: "metadata.name=cm-1"})
		NewWithT(t).Expect(describeEvent(t, next(t, w))).To(Equal("ADDED cm-1"))
	}},
	{"a watch ends after its timeout", func(t *testing.T, s *server) {
		w := s.watch(t, s.namespace(t), metav1.ListOptions{TimeoutSeconds: ptr.To[int64](1)})
		NewWithT(t).Eventually(w.ResultChan()).WithTimeout(mctest.Timeout).Should(BeClosed())
	}},
	{"a watch from a future revision sends nothing before it", func(t *testing.T, s *server) {
		namespace := s.namespace(t)
		w := s.watch(t, namespace, metav1.ListOptions{ResourceVersion: "999999999"})
		s.configMap(t, namespace, "a")
		NewWithT(t).Consistently(w.ResultChan()).ShouldNot(Receive())
	}},
	{"finalizers show as a modification before the deletion", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		cm := s.configMap(t, namespace, "a")
		cm.Finalizers = []string{"mctest.example.org/one"}
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		w := s.watch(t, namespace, metav1.ListOptions{ResourceVersion: cm.ResourceVersion})
		g.Expect(s.client.Delete(t.Context(), cm)).To(Succeed())
		g.Expect(describeEvent(t, next(t, w))).To(Equal("MODIFIED a"))
		cm.Finalizers, cm.ResourceVersion = nil, ""
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		g.Expect(describeEvent(t, next(t, w))).To(Equal("DELETED a"))
	}},
	{"metadata can be watched", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 1)
		c, err := metadata.NewForConfig(s.config)
		g.Expect(err).NotTo(HaveOccurred())
		w, err := c.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{
			SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		g.Expect(err).NotTo(HaveOccurred())
		defer func() {
			w.Stop()
			for range w.ResultChan() { // Its filter waits for a reader.
			}
		}()
		event := next(t, w)
		g.Expect(describeEvent(t, event)).To(Equal("ADDED cm-0"))
		g.Expect(event.Object).To(BeAssignableToTypeOf(&metav1.PartialObjectMetadata{}))
		g.Expect(next(t, w).Type).To(Equal(watch.Bookmark))
	}},
}
