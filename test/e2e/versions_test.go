// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// versionedHub is a real hub that serves the inventory API in two versions.
type versionedHub struct {
	*realfleet.ControlPlane
	client client.Client // also of CustomResourceDefinitions
}

var startVersionedHub = sync.OnceValues(func() (*versionedHub, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cp, err := planes.startControlPlane(ctx, "two-versions")
	if err != nil {
		return nil, err
	}
	if _, err := envtest.InstallCRDs(cp.Config, envtest.CRDInstallOptions{Paths: []string{"testdata"}, ErrorIfPathMissing: true, MaxTime: time.Minute}); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	h := &versionedHub{ControlPlane: cp}
	h.client, err = client.New(cp.Config, client.Options{Scheme: scheme})
	return h, err
})

func newVersionedHub(t *testing.T) *versionedHub {
	t.Helper()
	realPlanes(t)
	h, err := startVersionedHub()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// serve changes which versions of ClusterProfiles and PlacementDecisions are served,
// and waits until v1alpha1 is or is not.
func (h *versionedHub) serve(t *testing.T, versions ...string) {
	t.Helper()
	g := NewWithT(t)
	for _, resource := range []string{"clusterprofiles", "placementdecisions"} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(h.client.Get(t.Context(), client.ObjectKey{Name: resource + "." + v1alpha1.Group}, crd)).To(Succeed())
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Served = slices.Contains(versions, crd.Spec.Versions[i].Name)
		}
		g.Expect(h.client.Update(t.Context(), crd)).To(Succeed())
	}
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		g.Eventually(func() bool {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ClusterProfileList"))
			list.SetAPIVersion(v1alpha1.Group + "/" + version)
			return h.client.List(t.Context(), list) == nil
		}).Should(Equal(slices.Contains(versions, version)), version)
	}
}

// in returns the profile in a version of the API.
func in(t *testing.T, version string, profile *inventory.Profile) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(profile)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ClusterProfile"))
	u.SetAPIVersion(v1alpha1.Group + "/" + version)
	return u
}

// put creates or updates the profile, and its status, in a version of the API.
func (h *versionedHub) put(t *testing.T, version string, profile *inventory.Profile) error {
	t.Helper()
	current := in(t, version, profile)
	err := h.client.Get(t.Context(), client.ObjectKeyFromObject(current), current)
	written := in(t, version, profile)
	if apierrors.IsNotFound(err) {
		err = h.client.Create(t.Context(), written)
	} else if err == nil {
		written.SetResourceVersion(current.GetResourceVersion())
		err = h.client.Update(t.Context(), written)
	}
	if err != nil {
		return err
	}
	written.Object["status"] = in(t, version, profile).Object["status"]
	return h.client.Status().Update(t.Context(), written)
}

// get reads the profile in a version of the API.
func (h *versionedHub) get(t *testing.T, version string, profile *inventory.Profile) *inventory.Profile {
	t.Helper()
	u := in(t, version, profile)
	stored := &inventory.Profile{}
	if err := errors.Join(h.client.Get(t.Context(), client.ObjectKeyFromObject(u), u),
		runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, stored)); err != nil {
		t.Fatal(err)
	}
	return stored
}

// deleteAll deletes the profiles when the test ends.
func (h *versionedHub) deleteAll(t *testing.T) {
	t.Cleanup(func() {
		u := in(t, "v1alpha1", &inventory.Profile{})
		if err := h.client.DeleteAllOf(context.WithoutCancel(t.Context()), u, client.InNamespace("default")); err != nil {
			t.Error(err)
		}
	})
}

// versionSink keeps profiles, and counts those that are removed.
type versionSink struct {
	mu       sync.Mutex // guards what follows
	profiles map[string]*inventory.Profile
	removed  int
}

func (s *versionSink) Put(p *inventory.Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profiles[p.Name] = p
}

func (s *versionSink) Remove(key inventory.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed++
	delete(s.profiles, key.Name)
}

func (s *versionSink) Synced() {}

// content returns names and display names.
func (s *versionSink) content() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.profiles)) {
		all = append(all, name+"="+s.profiles[name].Spec.DisplayName)
	}
	return strings.Join(all, " ")
}

func (s *versionSink) removals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removed
}

func (s *versionSink) profile(name string) *inventory.Profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.profiles[name]
}

// read runs a source until the test ends.
func (h *versionedHub) read(t *testing.T, options hub.Options) *versionSink {
	t.Helper()
	source, err := hub.New(h.Config, options)
	if err != nil {
		t.Fatal(err)
	}
	sink := &versionSink{profiles: map[string]*inventory.Profile{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return sink
}

func versioned(name, displayName string) *inventory.Profile {
	provider := inventory.AccessProvider{Name: "a", Cluster: clientcmdv1.Cluster{Server: "https://" + name}}
	return &inventory.Profile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1alpha1.ClusterProfileSpec{DisplayName: displayName, ClusterManager: v1alpha1.ClusterManager{Name: "test"}},
		Status: v1alpha1.ClusterProfileStatus{
			Conditions:      []metav1.Condition{},
			AccessProviders: []inventory.AccessProvider{provider},
		},
	}
}

func TestHubWithTwoVersions(t *testing.T) {
	g := NewWithT(t)
	h := newVersionedHub(t)
	h.deleteAll(t)
	g.Expect(h.put(t, "v1alpha1", versioned("first", "1"))).To(Succeed())
	g.Expect(h.put(t, "v1alpha2", versioned("second", "1"))).To(Succeed())
	informers, err := cache.New(h.Config, cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}})
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, informers)
	sinks := map[string]*versionSink{
		"own watch": h.read(t, hub.Options{Namespace: "default"}),
		"cache":     h.read(t, hub.Options{Cache: informers}),
	}
	follow := func(want string) {
		t.Helper()
		for name, sink := range sinks {
			// The cache of another version follows discovery and client-go's backoff.
			g.Eventually(sink.content).WithTimeout(3*time.Minute).Should(Equal(want), name)
		}
	}
	follow("first=1 second=1")

	h.serve(t, "v1alpha2")
	g.Expect(h.put(t, "v1alpha2", versioned("first", "2"))).To(Succeed())
	g.Expect(h.put(t, "v1alpha2", versioned("third", "1"))).To(Succeed())
	follow("first=2 second=1 third=1")

	h.serve(t, "v1alpha1", "v1alpha2")
	g.Expect(h.put(t, "v1alpha1", versioned("first", "3"))).To(Succeed())
	follow("first=3 second=1 third=1")
	for name, sink := range sinks {
		g.Expect(sink.removals()).To(BeZero(), name)
		g.Expect(sink.profile("third").Status.AccessProviders).To(Equal(versioned("third", "").Status.AccessProviders), name)
		g.Expect(sink.profile("third").APIVersion).To(Equal(v1alpha1.GroupVersion.String()), name)
	}
}

func TestV1alpha2HasNoCredentialProviders(t *testing.T) {
	g := NewWithT(t)
	h := newVersionedHub(t)
	h.deleteAll(t)
	p := versioned("deprecated", "1")
	p.Status.CredentialProviders = p.Status.AccessProviders
	g.Expect(h.put(t, "v1alpha1", p)).To(Succeed())
	g.Expect(h.get(t, "v1alpha1", p).Status.CredentialProviders).To(HaveLen(1))
	g.Expect(h.get(t, "v1alpha2", p).Status.CredentialProviders).To(BeEmpty())
}

func TestSyntheticProfilesInBothVersions(t *testing.T) {
	h := newVersionedHub(t)
	for _, tc := range syntheticProfiles {
		for _, version := range []string{"v1alpha1", "v1alpha2"} {
			t.Run(tc.name+", "+version, func(t *testing.T) {
				g := NewWithT(t)
				h.deleteAll(t)
				profile, err := inventory.Synthesize(tc.synthetic)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(h.put(t, version, profile)).To(Succeed())
				for _, other := range []string{"v1alpha1", "v1alpha2"} {
					stored := h.get(t, other, profile)
					g.Expect(stored.Spec).To(Equal(profile.Spec))
					g.Expect(equality.Semantic.DeepEqual(stored.Status, profile.Status)).To(BeTrue(), "nothing is dropped or changed in "+other)
				}
			})
		}
	}
}

// What Validate rejects because of v1alpha2, the schema of that must reject too.
func TestValidateMatchesV1alpha2(t *testing.T) {
	h := newVersionedHub(t)
	access := func(change func(*clientcmdv1.Cluster)) func(*inventory.Profile) {
		return func(p *inventory.Profile) { change(&p.Status.AccessProviders[0].Cluster) }
	}
	for _, tc := range []struct {
		name   string
		change func(*inventory.Profile)
	}{
		{"a long manager name", func(p *inventory.Profile) { p.Spec.ClusterManager.Name = strings.Repeat("m", 64) }},
		{"no server", access(func(c *clientcmdv1.Cluster) { c.Server = "" })},
		{"a server without a scheme", access(func(c *clientcmdv1.Cluster) { c.Server = "/api" })},
		{"a server without a host", access(func(c *clientcmdv1.Cluster) { c.Server = "https:///api" })},
		{"a long server", access(func(c *clientcmdv1.Cluster) { c.Server = "https://a/" + strings.Repeat("a", 2039) })},
		{"a proxy of another kind", access(func(c *clientcmdv1.Cluster) { c.ProxyURL = "ftp://a" })},
		{"a proxy without a host", access(func(c *clientcmdv1.Cluster) { c.ProxyURL = "http://" })},
		{"a long server name", access(func(c *clientcmdv1.Cluster) { c.TLSServerName = strings.Repeat("a", 254) })},
		{"an extension twice", access(func(c *clientcmdv1.Cluster) {
			extension := clientcmdv1.NamedExtension{Name: "a", Extension: runtime.RawExtension{Raw: []byte(`{}`)}}
			c.Extensions = []clientcmdv1.NamedExtension{extension, extension}
		})},
		{"access with a long name", func(p *inventory.Profile) { p.Status.AccessProviders[0].Name = strings.Repeat("a", 254) }},
		{"many ways of access", func(p *inventory.Profile) {
			for i := range 64 {
				p.Status.AccessProviders = append(p.Status.AccessProviders, inventory.AccessProvider{
					Name: strconv.Itoa(i), Cluster: clientcmdv1.Cluster{Server: "https://a"},
				})
			}
		}},
		{"an empty property", func(p *inventory.Profile) { p.Status.Properties = []v1alpha1.Property{{Name: "a"}} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			h.deleteAll(t)
			profile := versioned("refused", "")
			profile.Labels = map[string]string{v1alpha1.LabelClusterManagerKey: "test"}
			g.Expect(inventory.Validate(profile)).To(Succeed())
			tc.change(profile)
			profile.Labels[v1alpha1.LabelClusterManagerKey] = profile.Spec.ClusterManager.Name
			g.Expect(inventory.Validate(profile)).NotTo(Succeed())
			err := h.put(t, "v1alpha2", profile)
			g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		})
	}
}
