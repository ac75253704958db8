// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"
	"maps"
	"os"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/publish"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

const (
	namespace = "default"
	manager   = "laptop"
	uid       = "0a3e7d5c-5c0f-4f0e-9d3b-6f2f1b9d6f11"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	SetDefaultEventuallyTimeout(mctest.Timeout)
	SetDefaultConsistentlyDuration(200 * time.Millisecond)
	goleak.VerifyTestMain(m)
}

// serve changes which versions the hub serves.
func (h *testHub) serve(versions ...string) {
	h.t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := h.Get(client.ObjectKey{Name: "clusterprofiles." + v1alpha1.Group}, definition); err != nil {
		h.t.Fatal(err)
	}
	for i := range definition.Spec.Versions {
		definition.Spec.Versions[i].Served = slices.Contains(versions, definition.Spec.Versions[i].Name)
	}
	if err := h.Update(definition); err != nil {
		h.t.Fatal(err)
	}
}

// testHub serves ClusterProfiles in some versions.
type testHub struct {
	*mctest.Cluster
	t       *testing.T
	version string
}

func newHub(t *testing.T, served ...string) *testHub {
	t.Helper()
	if len(served) == 0 {
		served = []string{"v1alpha1", "v1alpha2"}
	}
	content, err := os.ReadFile("../../../test/e2e/testdata/inventory-in-two-versions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(content), "\n---\n")
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(first), definition); err != nil {
		t.Fatal(err)
	}
	for i := range definition.Spec.Versions {
		definition.Spec.Versions[i].Served = slices.Contains(served, definition.Spec.Versions[i].Name)
	}
	h := &testHub{mctest.New(t), t, served[0]}
	if err := h.Create(definition); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *testHub) object(p *inventory.Profile) *unstructured.Unstructured {
	h.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		h.t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(v1alpha1.Group + "/" + h.version)
	u.SetKind("ClusterProfile")
	return u
}

// put creates a profile of another writer.
func (h *testHub) put(p *inventory.Profile) {
	h.t.Helper()
	if err := h.Create(h.object(p)); err != nil {
		h.t.Fatal(err)
	}
}

// profile returns the profile, or an empty one.
func (h *testHub) profile(name string) *inventory.Profile {
	u := h.object(&inventory.Profile{})
	p := &inventory.Profile{}
	if err := h.Get(client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
		return p
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
		h.t.Fatal(err)
	}
	return p
}

// health returns status and reason of ControlPlaneHealthy.
func (h *testHub) health(name string) func() string {
	return func() string {
		p := h.profile(name)
		if p.UID == "" {
			return "no profile"
		}
		return inventory.HealthOf(p).String()
	}
}

func (h *testHub) names() []string {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(h.object(&inventory.Profile{}).GroupVersionKind())
	list.SetKind("ClusterProfileList")
	if err := h.List(list, client.InNamespace(namespace)); err != nil {
		h.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return names
}

func (h *testHub) writes() int {
	return h.Requests("create", "clusterprofiles") + h.Requests("patch", "clusterprofiles") +
		h.Requests("patch", "clusterprofiles/status") + h.Requests("delete", "clusterprofiles")
}

// source is an inventory.Source that a test changes.
type source struct {
	mu       sync.Mutex // guards what follows
	profiles map[inventory.Key]*inventory.Profile
	unsynced bool
	fail     chan error
	sink     inventory.Sink
}

func newSource(profiles ...*inventory.Profile) *source {
	s := &source{profiles: map[inventory.Key]*inventory.Profile{}, fail: make(chan error)}
	for _, p := range profiles {
		s.profiles[inventory.KeyOf(p)] = p
	}
	return s
}

func (s *source) Run(ctx context.Context, sink inventory.Sink) error {
	s.mu.Lock()
	for _, key := range slices.SortedFunc(maps.Keys(s.profiles), func(a, b inventory.Key) int { return strings.Compare(a.String(), b.String()) }) {
		sink.Put(s.profiles[key])
	}
	if !s.unsynced {
		sink.Synced()
	}
	s.sink = sink
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sink = nil
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.fail:
		return err
	}
}

func (s *source) put(p *inventory.Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profiles[inventory.KeyOf(p)] = p
	if s.sink != nil {
		s.sink.Put(p)
	}
}

func (s *source) remove(key inventory.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.profiles, key)
	if s.sink != nil {
		s.sink.Remove(key)
	}
}

func (s *source) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsynced = false
	if s.sink != nil {
		s.sink.Synced()
	}
}

// synthetic returns the profile of a cluster.
func synthetic(t *testing.T, cluster string, change ...func(*inventory.Synthetic)) *inventory.Profile {
	t.Helper()
	s := inventory.Synthetic{
		ClusterName: cluster, Manager: "kind", Namespace: "source", Labels: map[string]string{"tier": "gold"},
		Conditions:      []metav1.Condition{{Type: inventory.ConditionJoined, Status: metav1.ConditionTrue, Reason: "Listed"}},
		AccessProviders: []inventory.AccessProvider{{Name: "kind", Cluster: clientcmdv1.Cluster{Server: "https://127.0.0.1:6443"}}},
	}
	for _, c := range change {
		c(&s)
	}
	p, err := inventory.Synthesize(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// probes returns results that a test changes.
type probes struct {
	mu      sync.Mutex // guards what follows
	results map[string]publish.ProbeResult
	hang    map[string]chan struct{} // ignores the context
	count   map[string]int
}

var ready = publish.ProbeResult{Status: metav1.ConditionTrue, Reason: publish.ReasonReady, KubernetesVersion: "v1.37.1", ClusterID: uid}

func newProbes() *probes {
	return &probes{results: map[string]publish.ProbeResult{}, hang: map[string]chan struct{}{}, count: map[string]int{}}
}

func (p *probes) set(name string, result publish.ProbeResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results[name] = result
}

func (p *probes) probe(_ context.Context, profile *inventory.Profile) (publish.ProbeResult, error) {
	p.mu.Lock()
	result, ok := p.results[profile.Name]
	hang := p.hang[profile.Name]
	p.count[profile.Name]++
	p.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if !ok {
		result = ready
	}
	return result, nil
}

func (p *probes) counted(name string) func() int {
	return func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.count[name]
	}
}

// options publish quickly.
func (h *testHub) options(src inventory.Source, probe publish.ProbeFunc) publish.Options {
	return publish.Options{
		Hub: h.Config(), Source: src, Namespace: namespace, ManagerName: manager, Probe: probe,
		ProbeInterval: 20 * time.Millisecond, WriteInterval: time.Millisecond,
	}
}

// start runs a publisher until the function returned is called, or the test ends.
func start(t *testing.T, options publish.Options, logs ...*logBuffer) (*publish.Publisher, func()) {
	t.Helper()
	p, err := publish.New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, l := range logs {
		ctx = log.IntoContext(ctx, funcr.New(l.add, funcr.Options{}))
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return p, stop
}

type logBuffer struct {
	mu    sync.Mutex // guards lines
	lines strings.Builder
}

func (b *logBuffer) add(prefix, args string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines.WriteString(prefix + " " + args + "\n")
}

func (b *logBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.String()
}
