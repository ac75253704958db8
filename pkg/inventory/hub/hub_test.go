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
	"sync/atomic"
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
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

func TestProfilesAreToldAsTheyComeChangeAndGo(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	g.Expect(c.Create(profile("eu", "1"))).To(Succeed())
	roll := run(t, c, hub.Options{})
	g.Eventually(roll.synced).WithTimeout(patience).Should(BeTrue())
	g.Expect(roll.content()).To(Equal("default/eu=1"), "synced comes after the first listing")

	g.Expect(c.Create(profile("us", "1"))).To(Succeed())
	g.Eventually(roll.content).WithTimeout(patience).Should(Equal("default/eu=1 default/us=1"))
	g.Expect(c.Update(profile("eu", "2"))).To(Succeed())
	g.Eventually(roll.content).WithTimeout(patience).Should(Equal("default/eu=2 default/us=1"))
	g.Expect(c.Delete(profile("us", ""))).To(Succeed())
	g.Eventually(roll.content).WithTimeout(patience).Should(Equal("default/eu=2"))
}

func TestTheHubSelectsProfiles(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	elsewhere := profile("elsewhere", "1")
	elsewhere.Namespace = "kube-public"
	g.Expect(c.Create(profile("a", "1"), profile("b", "2"), elsewhere)).To(Succeed())

	byLabel := run(t, c, hub.Options{LabelSelector: labels.SelectorFromSet(labels.Set{"version": "1"})})
	byNamespace := run(t, c, hub.Options{Namespace: "default"})
	g.Eventually(byLabel.content).WithTimeout(patience).Should(Equal("default/a=1 kube-public/elsewhere=1"))
	g.Eventually(byNamespace.content).WithTimeout(patience).Should(Equal("default/a=1 default/b=2"))

	g.Expect(c.Update(profile("a", "2"))).To(Succeed())
	g.Eventually(byLabel.content).WithTimeout(patience).Should(Equal("kube-public/elsewhere=1"))
}

func TestAnOutageLeavesTheRollAsItWasAndTheRelistRemovesWhatHasGone(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	g.Expect(c.Create(profile("stays", "1"), profile("goes", "1"))).To(Succeed())
	logs := &lines{}
	roll := run(t, c, hub.Options{}, logs)
	g.Eventually(roll.content).WithTimeout(patience).Should(Equal("default/goes=1 default/stays=1"))

	c.Fault(mctest.Refuse)
	g.Expect(c.Delete(profile("goes", ""))).To(Succeed())
	c.Compact() // so that the watch cannot resume
	g.Eventually(logs.text).WithTimeout(patience).Should(ContainSubstring("the hub cannot be read"))
	g.Expect(roll.content()).To(Equal("default/goes=1 default/stays=1"))

	c.Clear()
	g.Eventually(roll.content).WithTimeout(patience).Should(Equal("default/stays=1"))
	g.Expect(logs.text()).To(ContainSubstring("can be read again"))
	g.Expect(strings.Count(logs.text(), "Waiting for the hub")).To(Equal(1), "said once, however often it was tried")
}

func TestAHubWithoutTheAPIIsWaitedFor(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	logs := &lines{}
	roll := run(t, c, hub.Options{}, logs)
	g.Eventually(logs.text).WithTimeout(patience).Should(ContainSubstring("does not serve ClusterProfiles"))
	g.Expect(roll.synced()).To(BeFalse())

	g.Expect(c.Create(crd("ClusterProfile"))).To(Succeed())
	g.Eventually(roll.synced).WithTimeout(patience).Should(BeTrue())
}

func TestAHubsProfilesNameTheirClustersOnlyWhereTheirAuthorsAreTrusted(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		trust                 bool
		clusterName, original string
		alternates            int
	}{
		{"not by default", false, "default/eu", "default/eu", 0},
		{"by an option", true, "prod/eu", "prod/renamed", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newHub(t)
			p := profile("eu", "1")
			p.Annotations = map[string]string{
				inventory.AnnotationClusterName: "prod/eu", inventory.AnnotationRenamedFrom: "prod/renamed",
				inventory.AnnotationAlternates: "prod/other", "note": "stays",
			}
			g.Expect(c.Create(p)).To(Succeed())
			roll := run(t, c, hub.Options{TrustAnnotations: tc.trust})
			g.Eventually(roll.synced).WithTimeout(patience).Should(BeTrue())
			told := roll.profile("default/eu")
			g.Expect(inventory.ClusterName(told)).To(Equal(tc.clusterName))
			g.Expect(inventory.OriginalKey(told).String()).To(Equal(tc.original))
			g.Expect(inventory.Alternates(told)).To(HaveLen(tc.alternates))
			g.Expect(told.Annotations).To(HaveKeyWithValue("note", "stays"))
		})
	}
}

func TestNoConnectionIsLeftBehind(t *testing.T) {
	c := newHub(t)
	for i := range 20 { // so that watches do not end in time by chance
		g := NewWithT(t)
		config := c.Config()
		if i%2 == 1 {
			config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &countingTransport{RoundTripper: rt} })
		}
		source, err := hub.New(config, hub.Options{})
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		r := newRoll()
		ended := make(chan error, 1)
		go func() { ended <- source.Run(ctx, r) }()
		g.Eventually(r.synced).WithTimeout(patience).Should(BeTrue())
		g.Eventually(func() int { return c.OpenWatches("") }).WithTimeout(patience).Should(Equal(2), "of profiles and namespaces")
		g.Eventually(c.Connections).WithTimeout(patience).Should(Equal(1), "one that was opened in vain is closed by then")
		cancel()
		g.Expect(<-ended).To(Succeed())
		g.Eventually(c.Connections).WithTimeout(patience).Should(BeZero())
	}
}

func TestTheHubIsReadByTheClientThatIsGiven(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	client, err := rest.HTTPClientFor(c.Config())
	g.Expect(err).NotTo(HaveOccurred())
	shared := &countingTransport{RoundTripper: client.Transport}
	client.Transport = shared
	roll := run(t, c, hub.Options{HTTPClient: client})
	g.Eventually(roll.synced).WithTimeout(patience).Should(BeTrue())
	all := 0
	for _, resource := range []string{"clusterprofiles", "namespaces"} {
		all += c.Requests("", resource)
	}
	g.Expect(shared.requests.Load()).To(BeNumerically(">=", all), "all requests")
	g.Expect(all).To(BeNumerically(">=", 2))
}

// countingTransport counts requests.
type countingTransport struct {
	http.RoundTripper
	requests atomic.Int64
}

func (t *countingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.requests.Add(1)
	return t.RoundTripper.RoundTrip(req)
}

func TestAHubNeedsAConfig(t *testing.T) {
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
func run(t *testing.T, c *mctest.Cluster, options hub.Options, logs ...*lines) *roll {
	t.Helper()
	source, err := hub.New(c.Config(), options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, l := range logs {
		ctx = log.IntoContext(ctx, funcr.New(l.add, funcr.Options{}))
	}
	r := newRoll()
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

// roll is a sink that keeps what it is told.
type roll struct {
	mu       sync.Mutex
	profiles map[string]*inventory.Profile
	sets     map[string]string // ClusterSets, by the profile's name
	complete bool
}

func newRoll() *roll {
	return &roll{profiles: map[string]*inventory.Profile{}, sets: map[string]string{}}
}

func (r *roll) Put(p *inventory.Profile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.profiles[inventory.KeyOf(p).String()] = p
	r.sets[p.Name] = inventory.ClusterSet(p)
}

func (r *roll) Remove(key inventory.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.profiles, key.String())
}

func (r *roll) Synced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete = true
}

func (r *roll) synced() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.complete
}

// set returns the ClusterSet of the profile of that name.
func (r *roll) set(name string) func() string {
	return func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.sets[name]
	}
}

// profile returns the profile of the key, or nil.
func (r *roll) profile(key string) *inventory.Profile {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.profiles[key]
}

// content returns the profiles as "namespace/name=version", in order.
func (r *roll) content() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, key := range slices.Sorted(maps.Keys(r.profiles)) {
		all = append(all, fmt.Sprintf("%s=%s", key, r.profiles[key].Labels["version"]))
	}
	return strings.Join(all, " ")
}

// lines keeps what is logged.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) add(_, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.all, args)
}

func (l *lines) text() string {
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
