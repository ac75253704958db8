// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/publish"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestPublishedProfile(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			h := newHub(t, version)
			start(t, h.options(newSource(synthetic(t, "Kind/eu")), newProbes().probe))
			name := inventory.ProfileName("Kind/eu")
			g.Eventually(h.health(name)).Should(Equal("Healthy (Ready)"))
			p := h.profile(name)
			g.Expect(inventory.Validate(p)).To(Succeed())
			g.Expect(p.Spec).To(Equal(v1alpha1.ClusterProfileSpec{DisplayName: "Kind/eu", ClusterManager: v1alpha1.ClusterManager{Name: manager}}))
			g.Expect(p.Labels).To(Equal(map[string]string{
				v1alpha1.LabelClusterManagerKey: manager, publish.LabelPublisher: publish.FieldManager,
				inventory.LabelMemberID: uid, "tier": "gold",
			}))
			g.Expect(inventory.ClusterName(p)).To(Equal("Kind/eu"))
			g.Expect(inventory.ClusterID(p)).To(Equal(uid))
			g.Expect(p.Status.Version.Kubernetes).To(Equal("v1.37.1"))
			g.Expect(p.Status.AccessProviders).To(Equal(synthetic(t, "Kind/eu").Status.AccessProviders))
			g.Expect(p.Status.Conditions).To(ContainElement(HaveField("Type", inventory.ConditionJoined)), "that of the source")
			for _, entry := range p.ManagedFields {
				if entry.Operation == metav1.ManagedFieldsOperationApply {
					g.Expect(entry.Manager).To(Equal(publish.FieldManager))
				}
			}
		})
	}
}

func TestRestartWritesNothing(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	src := newSource(synthetic(t, "eu"))
	_, stop := start(t, h.options(src, newProbes().probe))
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	stop()
	before := h.profile("eu")
	// Other times of the source are no change.
	src.put(synthetic(t, "eu", func(s *inventory.Synthetic) { s.Now = time.Now().Add(-time.Hour) }))

	h.ResetRequests()
	probes := newProbes()
	p, _ := start(t, h.options(src, probes.probe))
	g.Eventually(p.Status).Should(HaveLen(1))
	g.Eventually(probes.counted("eu")).Should(BeNumerically(">", 3))
	g.Expect(h.profile("eu").ResourceVersion).To(Equal(before.ResourceVersion))
	g.Expect(h.writes()).To(Equal(2), "metadata and status are applied once, which changes nothing")
	g.Expect(p.Status()).To(Equal([]publish.Status{{Name: "eu", ClusterName: "eu", Outcome: publish.Unchanged}}))
}

// What a publisher that has ended set is removed when the source no longer has it.
func TestRestartRemovesOldFields(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	src := newSource(synthetic(t, "eu", func(s *inventory.Synthetic) {
		s.Properties = map[string]string{"region": "eu"}
		s.Annotations = map[string]string{"old": "1"}
	}))
	_, stop := start(t, h.options(src, nil))
	g.Eventually(func() int { return len(h.profile("eu").Status.Properties) }).WithPolling(time.Millisecond).Should(Equal(1))
	stop()
	foreign := h.object(h.profile("eu"))
	foreign.SetLabels(map[string]string{"added": "by-another"})
	for key, value := range h.profile("eu").Labels {
		labels := foreign.GetLabels()
		labels[key] = value
		foreign.SetLabels(labels)
	}
	g.Expect(h.Update(foreign)).To(Succeed())

	src.put(synthetic(t, "eu", func(s *inventory.Synthetic) { s.Labels = nil }))
	start(t, h.options(src, nil))
	g.Eventually(func() map[string]string { return h.profile("eu").Labels }).ShouldNot(HaveKey("tier"))
	g.Eventually(func() []v1alpha1.Property { return h.profile("eu").Status.Properties }).Should(BeEmpty())
	g.Expect(h.profile("eu").Labels).To(HaveKeyWithValue("added", "by-another"))
	g.Expect(h.profile("eu").Annotations).NotTo(HaveKey("old"))
}

func TestSourceAndHubChange(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	src := newSource(synthetic(t, "eu"))
	start(t, h.options(src, newProbes().probe))
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))

	src.put(synthetic(t, "eu", func(s *inventory.Synthetic) { s.Labels = map[string]string{"tier": "silver"} }))
	g.Eventually(func() string { return h.profile("eu").Labels["tier"] }).Should(Equal("silver"))

	changed := h.object(h.profile("eu"))
	changed.SetLabels(map[string]string{v1alpha1.LabelClusterManagerKey: manager, publish.LabelPublisher: publish.FieldManager, "tier": "mine"})
	g.Expect(h.Update(changed)).To(Succeed())
	g.Eventually(func() string { return h.profile("eu").Labels["tier"] }).Should(Equal("silver"), "drift is repaired")

	created := h.profile("eu").UID
	g.Expect(h.Delete(h.object(h.profile("eu")))).To(Succeed())
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	g.Expect(h.profile("eu").UID).NotTo(Equal(created))

	src.remove(inventory.Key{Namespace: "source", Name: "eu"})
	g.Eventually(h.names).Should(BeEmpty())
	src.put(synthetic(t, "eu"))
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
}

// own returns a profile as a publisher with the manager name writes it.
func own(name, manager string) *inventory.Profile {
	return &inventory.Profile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			v1alpha1.LabelClusterManagerKey: manager, publish.LabelPublisher: publish.FieldManager,
		}},
		Spec: v1alpha1.ClusterProfileSpec{ClusterManager: v1alpha1.ClusterManager{Name: manager}},
	}
}

func TestOthersAreNotTouched(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	unlabelled := own("unlabelled", manager)
	delete(unlabelled.Labels, publish.LabelPublisher)
	stale := own("stale-of-other", "other")
	keep := own("kept", manager)
	delete(keep.Labels, publish.LabelPublisher)
	versions := map[string]string{}
	for _, p := range []*inventory.Profile{own("other", "other"), unlabelled, stale, keep} {
		h.put(p)
		versions[p.Name] = h.profile(p.Name).ResourceVersion
	}
	logs := &logBuffer{}
	p, _ := start(t, h.options(newSource(synthetic(t, "other"), synthetic(t, "unlabelled"), synthetic(t, "eu")), newProbes().probe), logs)
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	g.Eventually(p.Status).Should(HaveLen(3))
	g.Eventually(p.Status).Should(ContainElements(
		And(HaveField("Name", "other"), HaveField("Outcome", publish.Refused), HaveField("Message", ContainSubstring(`cluster manager "other"`))),
		And(HaveField("Name", "unlabelled"), HaveField("Outcome", publish.Refused), HaveField("Message", ContainSubstring(publish.LabelPublisher))),
	))
	g.Consistently(func() int { return strings.Count(logs.text(), "Not allowed to publish") }).Should(Equal(2), "once each")
	for name, version := range versions {
		g.Expect(h.profile(name).ResourceVersion).To(Equal(version), name)
	}

	g.Expect(h.Delete(h.object(own("other", "other")))).To(Succeed())
	g.Eventually(h.health("other")).Should(Equal("Healthy (Ready)"), "the name is free")
}

// A profile that another writer creates between the watch and the write is not changed.
func TestRaceForName(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	lift := h.Fault(mctest.Slow(300 * time.Millisecond).On("clusterprofiles").For("create"))
	defer lift()
	foreign := own("eu", manager) // even with the same manager name
	delete(foreign.Labels, publish.LabelPublisher)
	p, _ := start(t, h.options(newSource(synthetic(t, "eu")), nil))
	g.Eventually(func() int { return h.Requests("create", "clusterprofiles") }).WithPolling(time.Millisecond).Should(Equal(1))
	h.put(foreign)
	version := h.profile("eu").ResourceVersion
	g.Eventually(p.Status).Should(ConsistOf(HaveField("Outcome", publish.Refused)))
	g.Expect(h.profile("eu").ResourceVersion).To(Equal(version))
}

func TestRemovedOnlyAfterSynced(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	h.put(own("stale", manager))
	h.put(own("other", "other"))
	src := newSource(synthetic(t, "eu"))
	src.unsynced = true
	start(t, h.options(src, newProbes().probe))
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	src.remove(inventory.Key{Namespace: "source", Name: "eu"})
	g.Consistently(h.names).Should(ConsistOf("stale", "other", "eu"))
	src.sync()
	g.Eventually(h.names).Should(ConsistOf("other"))
}

func TestSourceOutageRemovesNothing(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	src := newSource(synthetic(t, "eu"), synthetic(t, "us"))
	start(t, h.options(src, newProbes().probe))
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	g.Eventually(h.health("us")).Should(Equal("Healthy (Ready)"))
	src.mu.Lock()
	src.unsynced = true
	clear(src.profiles)
	src.mu.Unlock()
	src.fail <- errors.New("outage")
	g.Consistently(h.names).WithTimeout(2 * time.Second).Should(ConsistOf("eu", "us"))
	g.Eventually(func() bool { src.mu.Lock(); defer src.mu.Unlock(); return src.sink != nil }).Should(BeTrue())
	src.put(synthetic(t, "us"))
	src.sync()
	g.Eventually(h.names).Should(ConsistOf("us"))
}

func TestHubOutage(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	src := newSource(synthetic(t, "eu"))
	logs := &logBuffer{}
	start(t, h.options(src, newProbes().probe), logs)
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	h.Fault(mctest.Refuse)
	src.put(synthetic(t, "us"))
	src.put(synthetic(t, "asia"))
	g.Eventually(logs.text).Should(ContainSubstring("Cannot write to the hub, retrying"))
	h.Clear()
	g.Eventually(h.health("us")).Should(Equal("Healthy (Ready)"))
	g.Eventually(h.health("asia")).Should(Equal("Healthy (Ready)"))
	g.Expect(logs.text()).To(ContainSubstring("Hub can be written again"))
	g.Expect(strings.Count(logs.text(), "Cannot write to the hub")).To(Equal(1))
	g.Expect(logs.text()).NotTo(ContainSubstring("Cannot write the profile"))
}

func TestInvalidProfile(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	bad := synthetic(t, "bad")
	bad.Status.AccessProviders[0].Cluster.ProxyURL = "http://user:hunter2@proxy"
	src := newSource(bad, synthetic(t, "eu"))
	logs := &logBuffer{}
	p, _ := start(t, h.options(src, newProbes().probe), logs)
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	g.Eventually(p.Status).Should(ContainElement(And(HaveField("Name", "bad"), HaveField("Outcome", publish.Refused), HaveField("Message", ContainSubstring("must not contain credentials")))))
	g.Expect(h.names()).To(ConsistOf("eu"))
	g.Expect(logs.text()).NotTo(ContainSubstring("hunter2"))
	src.put(synthetic(t, "bad"))
	g.Eventually(h.health("bad")).Should(Equal("Healthy (Ready)"))
}

func TestDuplicateNames(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	in := func(namespace, cluster string) *inventory.Profile {
		return synthetic(t, cluster, func(s *inventory.Synthetic) { s.Namespace, s.Name = namespace, "eu" })
	}
	src := newSource(in("b", "second"))
	logs := &logBuffer{}
	p, stop := start(t, h.options(src, newProbes().probe), logs)
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	src.put(in("a", "first"))
	g.Eventually(p.Status).Should(HaveLen(2))
	g.Expect(inventory.ClusterName(h.profile("eu"))).To(Equal("second"), "the one that is published stays")
	g.Expect(strings.Count(logs.text(), "Duplicate profile name")).To(Equal(1))
	stop()

	start(t, h.options(src, newProbes().probe))
	g.Consistently(func() string { return inventory.ClusterName(h.profile("eu")) }).Should(Equal("second"), "also after a restart")
	src.remove(inventory.Key{Namespace: "b", Name: "eu"})
	g.Eventually(func() string { return inventory.ClusterName(h.profile("eu")) }).Should(Equal("first"))
}

func TestHubChangesVersion(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t, "v1alpha1")
	src := newSource(synthetic(t, "eu"))
	start(t, h.options(src, newProbes().probe))
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	h.serve("v1alpha2")
	h.version = "v1alpha2"
	src.put(synthetic(t, "us"))
	g.Eventually(h.health("us")).Should(Equal("Healthy (Ready)"))
	src.put(synthetic(t, "eu", func(s *inventory.Synthetic) { s.Labels["tier"] = "silver" }))
	g.Eventually(func() string { return h.profile("eu").Labels["tier"] }).Should(Equal("silver"))
}
