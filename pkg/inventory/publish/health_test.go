// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/publish"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

var unreachable = publish.ProbeResult{Status: metav1.ConditionFalse, Reason: publish.ReasonUnreachable, Message: "no response in time"}

func TestHealthIsKeptTrue(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	probes := newProbes()
	start(t, h.options(newSource(synthetic(t, "eu")), probes.probe))
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	probes.set("eu", unreachable)
	g.Eventually(h.health("eu")).Should(Equal("Unhealthy (Unreachable)"))
	p := h.profile("eu")
	g.Expect(inventory.ClusterID(p)).To(Equal(uid), "what was observed stays")
	g.Expect(inventory.MemberID(p)).To(Equal(uid))
	g.Expect(p.Status.Version.Kubernetes).To(Equal("v1.37.1"))
	probes.set("eu", ready)
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
}

func TestOneFailedProbeIsIgnored(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	probes := newProbes()
	options := h.options(newSource(synthetic(t, "eu")), probes.probe)
	options.FailureThreshold = 1 << 30
	start(t, options)
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	probes.set("eu", unreachable)
	count := probes.counted("eu")()
	g.Eventually(probes.counted("eu")).Should(BeNumerically(">", count+3))
	g.Expect(h.health("eu")()).To(Equal("Healthy (Ready)"))
}

func TestProbeErrorIsUnknown(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	start(t, h.options(newSource(synthetic(t, "eu")), func(context.Context, *inventory.Profile) (publish.ProbeResult, error) {
		return publish.ProbeResult{}, errors.New("no credential plugin")
	}))
	g.Eventually(h.health("eu")).Should(Equal("Unknown (ProbeFailed)"))
	g.Expect(inventory.HealthOf(h.profile("eu")).Message).To(Equal("no credential plugin"))
}

// A probe that ignores its context delays no other profile, and is not repeated.
func TestHangingProbes(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	probes := newProbes()
	release := make(chan struct{})
	returnAll := sync.OnceFunc(func() { close(release) })
	defer returnAll() // before the publisher is stopped, which waits for probes
	src := newSource()
	for i := range 100 { // more than there are slots
		name := "hangs-" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		probes.hang[name] = release
		src.put(synthetic(t, name))
	}
	src.put(synthetic(t, "eu"))
	options := h.options(src, probes.probe)
	options.ProbeTimeout = 50 * time.Millisecond
	_, stop := start(t, options)
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	g.Eventually(h.health("hangs-aa")).Should(Equal("Unknown (ProbeTimedOut)"))
	g.Expect(probes.counted("hangs-aa")()).To(Equal(1))

	// Its address changes, and it is removed, although its probe hangs.
	src.put(synthetic(t, "hangs-aa", func(s *inventory.Synthetic) { s.AccessProviders[0].Cluster.Server = "https://127.0.0.1:7443" }))
	g.Eventually(func() []inventory.AccessProvider { return h.profile("hangs-aa").Status.AccessProviders }).Should(
		ContainElement(HaveField("Cluster.Server", "https://127.0.0.1:7443")))
	src.remove(inventory.Key{Namespace: "source", Name: "hangs-ab"})
	g.Eventually(h.names).ShouldNot(ContainElement("hangs-ab"))
	returnAll()
	g.Eventually(h.health("hangs-aa")).Should(Equal("Healthy (Ready)"))
	stop()
}

func TestWritesAreCoalesced(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	probes := newProbes()
	src := newSource(synthetic(t, "eu"))
	options := h.options(src, probes.probe)
	options.WriteInterval = time.Hour
	options.FailureThreshold = 1
	start(t, options)
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	for _, tier := range []string{"1", "2", "3"} {
		src.put(synthetic(t, "eu", func(s *inventory.Synthetic) { s.Labels["tier"] = tier }))
	}
	g.Consistently(func() string { return h.profile("eu").Labels["tier"] }).Should(Equal("gold"))
	probes.set("eu", unreachable)
	g.Eventually(h.health("eu")).Should(Equal("Unhealthy (Unreachable)"), "at once")
	g.Expect(h.profile("eu").Labels["tier"]).To(Equal("3"), "with what has waited")
	probes.set("eu", ready)
	g.Consistently(h.health("eu")).Should(Equal("Unhealthy (Unreachable)"), "flapping is limited")
}

func TestHeartbeat(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	probes := newProbes()
	options := h.options(newSource(synthetic(t, "eu")), probes.probe)
	options.HeartbeatInterval = time.Second
	start(t, options)
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	observed := func() time.Time {
		for _, property := range h.profile("eu").Status.Properties {
			return property.LastObservedTime.Time
		}
		return time.Time{}
	}
	first := observed()
	g.Eventually(observed).Should(BeTemporally(">", first))
	probes.set("eu", unreachable)
	g.Eventually(h.health("eu")).Should(Equal("Unhealthy (Unreachable)"))
	last := observed()
	g.Consistently(observed).WithTimeout(1500*time.Millisecond).Should(Equal(last), "nothing is observed")
}

func TestChangedMessageWaits(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	probes := newProbes()
	start(t, h.options(newSource(synthetic(t, "eu")), probes.probe))
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	version := h.profile("eu").ResourceVersion
	changed := ready
	changed.Message = "another port"
	probes.set("eu", changed)
	g.Consistently(func() string { return h.profile("eu").ResourceVersion }).Should(Equal(version))
}

func TestRebuiltCluster(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	probes := newProbes()
	start(t, h.options(newSource(synthetic(t, "eu")), probes.probe))
	g.Eventually(func() string { return inventory.MemberID(h.profile("eu")) }).Should(Equal(uid))
	rebuilt := ready
	rebuilt.ClusterID = "9f4e0a6c-1a52-4a5c-9d0f-5a3f5b8a3f10"
	probes.set("eu", rebuilt)
	g.Eventually(func() string { return inventory.ClusterID(h.profile("eu")) }).Should(Equal(rebuilt.ClusterID))
	g.Eventually(func() string { return inventory.MemberID(h.profile("eu")) }).Should(Equal(rebuilt.ClusterID))
}

// The source's own data prevails over what is observed.
func TestIDsOfSource(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	long := "a123456789.b123456789.c123456789.d123456789.e123456789.f123456789.g123456789"
	labelled := synthetic(t, "labelled", func(s *inventory.Synthetic) { s.Labels[inventory.LabelMemberID] = "member" })
	set := synthetic(t, "set")
	set.Labels[v1alpha1.LabelClusterSetKey] = "production"
	start(t, h.options(newSource(
		synthetic(t, "eu", func(s *inventory.Synthetic) { s.ClusterID = "source-id" }),
		synthetic(t, "long", func(s *inventory.Synthetic) { s.ClusterID = long }),
		labelled, set,
	), newProbes().probe))
	for _, name := range []string{"eu", "long", "labelled", "set"} {
		g.Eventually(h.health(name)).Should(Equal("Healthy (Ready)"))
	}
	g.Expect(inventory.ClusterID(h.profile("eu"))).To(Equal("source-id"))
	g.Expect(inventory.MemberID(h.profile("eu"))).To(Equal("source-id"))
	g.Expect(inventory.ClusterID(h.profile("long"))).To(Equal(long))
	g.Expect(inventory.MemberID(h.profile("long"))).To(Equal(inventory.ProfileName(long)))
	g.Expect(inventory.MemberID(h.profile("labelled"))).To(Equal("member"))
	g.Expect(h.profile("set").Status.Properties).To(ContainElement(HaveField("Value", "production")))
}

func TestProbeCluster(t *testing.T) {
	for _, tc := range []struct {
		name    string
		fault   *mctest.Fault
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		{"a healthy cluster", nil, "True", publish.ReasonReady, ""},
		{"one that forbids to read its readiness", ptrTo(mctest.Forbidden.On("/readyz")), "True", publish.ReasonResponding, ""},
		{"one that refuses connections", ptrTo(mctest.Refuse), "False", publish.ReasonUnreachable, "cannot connect to"},
		{"one that hangs", ptrTo(mctest.Hang), "False", publish.ReasonUnreachable, "no response in time"},
		{"one that resets connections", ptrTo(mctest.Reset), "False", publish.ReasonUnreachable, ""},
		{"one with rejected credentials", ptrTo(mctest.Unauthorized), "Unknown", publish.ReasonUnauthorized, "did not accept"},
		{"a proxy that says ok", nil, "False", publish.ReasonUnexpectedResponse, "kube-system"},
		{"a proxy without a cluster", ptrTo(mctest.Unavailable), "False", publish.ReasonUnexpectedResponse, "503"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			if tc.fault != nil {
				c.Fault(*tc.fault)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			config := c.Config()
			if strings.HasSuffix(tc.name, "says ok") {
				proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
				defer proxy.Close()
				config = &rest.Config{Host: proxy.URL}
			}
			result, err := publish.ProbeCluster(ctx, config)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(result.Status) + " " + result.Reason).To(Equal(string(tc.status) + " " + tc.reason))
			g.Expect(result.Message).To(ContainSubstring(tc.message))
			if tc.status == metav1.ConditionTrue {
				g.Expect(result.ClusterID).To(BeEquivalentTo(c.UID()))
				g.Expect(result.KubernetesVersion).To(HavePrefix("v1."))
			}
		})
	}
}

func TestProbeClusterErrors(t *testing.T) {
	g := NewWithT(t)
	c, other := mctest.New(t), mctest.New(t)
	config := c.Config()
	config.CAData = other.Config().CAData
	result, err := publish.ProbeCluster(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Reason).To(Equal(publish.ReasonCertificateInvalid))
	g.Expect(result.Status).To(Equal(metav1.ConditionUnknown))

	_, err = publish.ProbeCluster(t.Context(), &rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("none")}})
	g.Expect(err).To(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = publish.ProbeCluster(ctx, c.Config())
	g.Expect(err).To(MatchError(context.Canceled))
}

// What real clusters say is published, through real requests.
func TestPublishWithProbeCluster(t *testing.T) {
	g := NewWithT(t)
	h, member := newHub(t), mctest.New(t)
	src := newSource(synthetic(t, "eu", func(s *inventory.Synthetic) {
		s.AccessProviders = []inventory.AccessProvider{{Name: "a", Cluster: clientcmdv1.Cluster{Server: member.Config().Host}}}
	}))
	start(t, h.options(src, func(ctx context.Context, _ *inventory.Profile) (publish.ProbeResult, error) {
		return publish.ProbeCluster(ctx, member.Config())
	}))
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	g.Expect(inventory.ClusterID(h.profile("eu"))).To(BeEquivalentTo(member.UID()))
	member.Fault(mctest.Refuse)
	g.Eventually(h.health("eu")).Should(Equal("Unhealthy (Unreachable)"))
	member.Clear()
	member.Fault(mctest.Forbidden.On("namespaces"))
	g.Eventually(h.health("eu")).Should(Equal("Healthy (Ready)"))
	g.Expect(member.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alive"}})).To(Succeed())
}

func ptrTo(f mctest.Fault) *mctest.Fault { return &f }
