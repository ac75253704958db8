// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

const timeout = 30 * time.Second

// everywhere are all namespaces.
var everywhere = []string{metav1.NamespaceAll}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

func TestSourceFollowsProfiles(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	g.Expect(c.Create(profile("eu", "1"))).To(Succeed())
	sink := run(t, c, hub.Options{Namespaces: everywhere})
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	g.Expect(sink.content()).To(Equal("default/eu=1"), "synced comes after the first listing")

	g.Expect(c.Create(profile("us", "1"))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/eu=1 default/us=1"))
	g.Expect(c.Update(profile("eu", "2"))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/eu=2 default/us=1"))
	g.Expect(c.Delete(profile("us", ""))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/eu=2"))
}

func TestLabelSelectorAndNamespace(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	elsewhere := profile("elsewhere", "1")
	elsewhere.Namespace = "kube-public"
	g.Expect(c.Create(profile("a", "1"), profile("b", "2"), elsewhere)).To(Succeed())

	byLabel := run(t, c, hub.Options{Namespaces: everywhere, LabelSelector: labels.SelectorFromSet(labels.Set{"version": "1"})})
	byNamespace := run(t, c, hub.Options{Namespace: "default"})
	g.Eventually(byLabel.content).WithTimeout(timeout).Should(Equal("default/a=1 kube-public/elsewhere=1"))
	g.Eventually(byNamespace.content).WithTimeout(timeout).Should(Equal("default/a=1 default/b=2"))

	g.Expect(c.Update(profile("a", "2"))).To(Succeed())
	g.Eventually(byLabel.content).WithTimeout(timeout).Should(Equal("kube-public/elsewhere=1"))
}

func TestOutageKeepsProfiles(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	g.Expect(c.Create(profile("kept", "1"), profile("deleted", "1"))).To(Succeed())
	logs := &logBuffer{}
	sink := run(t, c, hub.Options{Namespaces: everywhere}, logs)
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/deleted=1 default/kept=1"))

	c.Fault(mctest.Refuse)
	g.Expect(c.Delete(profile("deleted", ""))).To(Succeed())
	c.Compact() // so that the watch cannot resume
	g.Eventually(logs.text).WithTimeout(timeout).Should(ContainSubstring("requests to the hub fail"))
	g.Expect(sink.content()).To(Equal("default/deleted=1 default/kept=1"))

	c.Clear()
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/kept=1"))
	g.Expect(logs.text()).To(ContainSubstring("Hub can be read again"))
	g.Expect(strings.Count(logs.text(), "Cannot read the hub")).To(Equal(1), "logged once, not with each retry")
}

func TestWaitForClusterProfileAPI(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	logs := &logBuffer{}
	sink := run(t, c, hub.Options{Namespaces: everywhere}, logs)
	g.Eventually(logs.text).WithTimeout(timeout).Should(ContainSubstring("does not serve ClusterProfiles"))
	g.Expect(sink.synced()).To(BeFalse())

	g.Expect(c.Create(crd("ClusterProfile"))).To(Succeed())
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
}

func TestTrustAnnotations(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		trust                 bool
		clusterName, original string
	}{
		{"not by default", false, "default/eu", "default/eu"},
		{"by an option", true, "prod/eu", "prod/renamed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newHub(t)
			p := profile("eu", "1")
			p.Annotations = map[string]string{
				inventory.AnnotationClusterName: "prod/eu", inventory.AnnotationRenamedFrom: "prod/renamed",
				inventory.AnnotationSource: "1", "note": "kept",
			}
			g.Expect(c.Create(p)).To(Succeed())
			sink := run(t, c, hub.Options{Namespaces: everywhere, TrustAnnotations: tc.trust})
			g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
			sent := sink.profile("default/eu")
			g.Expect(inventory.ClusterName(sent)).To(Equal(tc.clusterName))
			g.Expect(inventory.OriginalKey(sent).String()).To(Equal(tc.original))
			g.Expect(sent.Annotations).NotTo(HaveKey(inventory.AnnotationSource))
			g.Expect(sent.Annotations).To(HaveKeyWithValue("note", "kept"))
		})
	}
}

func TestConnectionsAreClosed(t *testing.T) {
	c := newHub(t)
	for i := range 20 { // the order in which watches end varies
		g := NewWithT(t)
		config := c.Config()
		if i%2 == 1 {
			config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return struct{ http.RoundTripper }{rt} })
		}
		source, err := hub.New(config, hub.Options{Namespaces: everywhere})
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		r := newStore()
		ended := make(chan error, 1)
		go func() { ended <- source.Run(ctx, r) }()
		g.Eventually(r.synced).WithTimeout(timeout).Should(BeTrue())
		g.Eventually(func() int { return c.OpenWatches("") }).WithTimeout(timeout).Should(Equal(2), "of profiles and namespaces")
		g.Eventually(c.Connections).WithTimeout(timeout).Should(Equal(1), "a superfluous one is closed by then")
		cancel()
		g.Expect(<-ended).To(Succeed())
		g.Eventually(c.Connections).WithTimeout(timeout).Should(BeZero())
	}
}

func TestNewRequiresConfig(t *testing.T) {
	_, err := hub.New(nil, hub.Options{})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("rest.Config")))
}

// newHub returns a cluster that serves ClusterProfiles.
func newHub(t *testing.T) *mctest.Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return mctest.New(t, mctest.Options{Scheme: scheme})
}

func profile(name, version string) *inventory.Profile {
	return &inventory.Profile{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{"version": version},
	}}
}

// run runs a source on the hub until the test ends.
func run(t *testing.T, c *mctest.Cluster, options hub.Options, logs ...*logBuffer) *store {
	t.Helper()
	source, err := hub.New(c.Config(), options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, l := range logs {
		ctx = log.IntoContext(ctx, funcr.New(l.add, funcr.Options{}))
	}
	r := newStore()
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, r) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the source failed: %v", err)
		}
	})
	return r
}

// store is a sink that keeps profiles.
type store struct {
	mu       sync.Mutex
	profiles map[string]*inventory.Profile
	sets     map[string]string // ClusterSets, by the profile's name
	complete bool
}

func newStore() *store {
	return &store{profiles: map[string]*inventory.Profile{}, sets: map[string]string{}}
}

func (s *store) Put(p *inventory.Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profiles[inventory.KeyOf(p).String()] = p
	s.sets[p.Name] = inventory.ClusterSet(p)
}

func (s *store) Remove(key inventory.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.profiles, key.String())
}

func (s *store) Synced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = true
}

func (s *store) synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete
}

// set returns the ClusterSet of the profile of that name.
func (s *store) set(name string) func() string {
	return func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.sets[name]
	}
}

// profile returns the profile of the key, or nil.
func (s *store) profile(key string) *inventory.Profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.profiles[key]
}

// content returns the profiles as "namespace/name=version", in order.
func (s *store) content() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, key := range slices.Sorted(maps.Keys(s.profiles)) {
		all = append(all, fmt.Sprintf("%s=%s", key, s.profiles[key].Labels["version"]))
	}
	return strings.Join(all, " ")
}

// logBuffer keeps log lines.
type logBuffer struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *logBuffer) add(_, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.all, args)
}

func (l *logBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func crd(kind string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(kind) + "s.multicluster.x-k8s.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: v1alpha1.GroupVersion.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: strings.ToLower(kind) + "s", Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: v1alpha1.GroupVersion.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}
