// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// versionedHub is a hub that serves any of both versions of the API.
type versionedHub struct {
	*mctest.Cluster
	t *testing.T
}

func newVersionedHub(t *testing.T, versions ...string) *versionedHub {
	t.Helper()
	h := &versionedHub{mctest.New(t), t}
	for _, kind := range []string{"ClusterProfile", "PlacementDecision"} {
		definition := crd(kind)
		second := *definition.Spec.Versions[0].DeepCopy()
		second.Name, second.Storage = "v1alpha2", false
		definition.Spec.Versions = append(definition.Spec.Versions, second)
		if err := h.Create(definition); err != nil {
			t.Fatal(err)
		}
	}
	h.serve(versions...)
	return h
}

// serve changes which versions the hub serves.
func (h *versionedHub) serve(versions ...string) {
	h.t.Helper()
	for _, resource := range []string{"clusterprofiles", "placementdecisions"} {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := h.Get(client.ObjectKey{Name: resource + "." + v1alpha1.Group}, definition); err != nil {
			h.t.Fatal(err)
		}
		for i := range definition.Spec.Versions {
			v := &definition.Spec.Versions[i]
			v.Served = strings.Contains(strings.Join(versions, " "), v.Name)
		}
		if err := h.Update(definition); err != nil {
			h.t.Fatal(err)
		}
	}
}

// in returns the object in a version of the API.
func (h *versionedHub) in(version string, object client.Object) *unstructured.Unstructured {
	h.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		h.t.Fatal(err)
	}
	kind := "ClusterProfile"
	if _, ok := object.(*v1alpha1.PlacementDecision); ok {
		kind = "PlacementDecision"
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetAPIVersion(v1alpha1.Group + "/" + version)
	return u
}

// update replaces an object.
func (h *versionedHub) update(object *unstructured.Unstructured) error {
	current := object.DeepCopy()
	if err := h.Get(client.ObjectKeyFromObject(object), current); err != nil {
		return err
	}
	object.SetResourceVersion(current.GetResourceVersion())
	return h.Update(object)
}

// removals counts the profiles that are removed from a store.
type removals struct {
	*store
	count atomic.Int32
}

func (r *removals) Remove(key inventory.Key) {
	r.count.Add(1)
	r.store.Remove(key)
}

// read runs a source on the hub until the test ends.
func (h *versionedHub) read(options hub.Options, logs *logBuffer) *removals {
	h.t.Helper()
	source, err := hub.New(h.Config(), options)
	if err != nil {
		h.t.Fatal(err)
	}
	sink := &removals{store: newStore()}
	ctx, cancel := context.WithCancel(log.IntoContext(h.t.Context(), funcr.New(logs.add, funcr.Options{})))
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, sink) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Errorf("the source failed: %v", err)
		}
	})
	return sink
}

const versionChanged = "serves another version of the API"

func TestHubServesOnlyV1alpha2(t *testing.T) {
	g := NewWithT(t)
	h := newVersionedHub(t, "v1alpha2")
	selected := profile("selected", "1")
	selected.Status.AccessProviders = []inventory.AccessProvider{{Name: "p"}}
	selected.Status.AccessProviders[0].Cluster.Server = "https://a.example"
	decision := &v1alpha1.PlacementDecision{Decisions: []v1alpha1.ClusterDecision{
		{ClusterProfileRef: v1alpha1.ClusterProfileReference{Name: "selected"}},
	}}
	decision.Namespace, decision.Name = "default", "decision"
	object := h.in("v1alpha2", selected)
	g.Expect(h.Create(object, h.in("v1alpha2", profile("other", "1")), h.in("v1alpha2", decision))).To(Succeed())
	object.Object["status"] = h.in("v1alpha2", selected).Object["status"]
	g.Expect(h.UpdateStatus(object)).To(Succeed())

	logs := &logBuffer{}
	sink := h.read(hub.Options{Namespace: "default", Placement: &hub.Placement{Namespace: "default", Name: "decision"}}, logs)
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	g.Expect(sink.content()).To(Equal("default/selected=1"))
	sent := sink.profile("default/selected")
	g.Expect(sent.Status.AccessProviders).To(Equal(selected.Status.AccessProviders))
	g.Expect(sent.APIVersion).To(Equal(v1alpha1.GroupVersion.String()), "sinks get one type")
	g.Expect(strings.Count(logs.text(), versionChanged)).To(Equal(2), "once for each kind")
	g.Expect(logs.text()).NotTo(ContainSubstring("Cannot read"))

	g.Expect(h.Create(h.in("v1alpha2", profile("later", "1")))).To(Succeed())
	decision.Decisions[0].ClusterProfileRef.Name = "later"
	g.Expect(h.update(h.in("v1alpha2", decision))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/later=1 default/selected=1"), "watches work")
}

func TestHubChangesVersions(t *testing.T) {
	t.Parallel()
	for name, namespaces := range map[string][]string{"all namespaces": everywhere, "two namespaces": {"default", "kube-public"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time, client-go's backoff is awaited
			g := NewWithT(t)
			h := newVersionedHub(t, "v1alpha1")
			g.Expect(h.Create(h.in("v1alpha1", profile("a", "0")), h.in("v1alpha1", profile("gone", "0")),
				h.in("v1alpha1", inNamespace("kube-public", "b", "0")))).To(Succeed())
			logs := &logBuffer{}
			sink := h.read(hub.Options{Namespaces: namespaces}, logs)
			g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
			g.Expect(h.Delete(h.in("v1alpha1", profile("gone", "")))).To(Succeed())

			for i, step := range []struct {
				served []string
				logged int // lines so far
			}{
				{[]string{"v1alpha1", "v1alpha2"}, 0},
				{[]string{"v1alpha2"}, 1},
				{[]string{"v1alpha1", "v1alpha2"}, 2}, // v1alpha1 is preferred
				{[]string{"v1alpha1"}, 2},
			} {
				h.ResetRequests()
				h.serve(step.served...)
				version := string(rune('1' + i))
				g.Expect(h.update(h.in(step.served[0], profile("a", version)))).To(Succeed())
				g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/a="+version+" kube-public/b=0"), "step %d", i)
				g.Eventually(func() int { return strings.Count(logs.text(), versionChanged) }).WithTimeout(timeout).Should(Equal(step.logged), "step %d", i)
				g.Eventually(func() int { return h.OpenWatches("clusterprofiles") }).WithTimeout(timeout).Should(Equal(len(namespaces)), "step %d", i)
				g.Expect(h.Requests("list", "clusterprofiles")).To(BeNumerically("<=", 8*len(namespaces)), "step %d", i)
			}
			g.Expect(sink.count.Load()).To(BeEquivalentTo(1), "only what was deleted")
			g.Expect(logs.text()).NotTo(ContainSubstring("Cannot read"))
		})
	}
}

func TestRestoredHubWithEarlierVersion(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	h := newVersionedHub(t, "v1alpha1")
	g.Expect(h.Create(h.in("v1alpha1", profile("kept", "1")))).To(Succeed())
	backup := h.Snapshot()
	h.serve("v1alpha2")
	logs := &logBuffer{}
	sink := h.read(hub.Options{Namespaces: everywhere}, logs)
	g.Expect(h.Create(h.in("v1alpha2", profile("lost", "1")))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/kept=1 default/lost=1"))

	h.Restore(backup)
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/kept=1"))
	g.Expect(h.update(h.in("v1alpha1", profile("kept", "2")))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/kept=2"))
}

func TestVersionChangesDuringOutage(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	h := newVersionedHub(t, "v1alpha1")
	g.Expect(h.Create(h.in("v1alpha1", profile("a", "1")))).To(Succeed())
	logs := &logBuffer{}
	sink := h.read(hub.Options{Namespaces: everywhere}, logs)
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())

	h.Fault(mctest.Refuse)
	g.Eventually(logs.text).WithTimeout(timeout).Should(ContainSubstring("requests to the hub fail"))
	h.serve("v1alpha2")
	g.Expect(h.update(h.in("v1alpha2", profile("a", "2")))).To(Succeed())
	h.Clear()
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/a=2"))
	g.Eventually(logs.text).WithTimeout(timeout).Should(ContainSubstring("Hub can be read again"))
	g.Expect(sink.count.Load()).To(BeZero())

	h.serve()
	g.Eventually(logs.text).WithTimeout(timeout).Should(ContainSubstring("does not serve ClusterProfiles"))
	g.Expect(sink.content()).To(Equal("default/a=2"))
	h.serve("v1alpha2")
	g.Expect(h.update(h.in("v1alpha2", profile("a", "3")))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/a=3"))
}
