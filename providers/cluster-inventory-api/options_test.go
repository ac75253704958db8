// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

// world is a provider on a hub with the profiles default/eu, default/us and
// kube-public/ap, all of the same member.
type world struct {
	*clusterinventoryapi.Provider
	refuse func() // has the member refuse connections

	mu    sync.Mutex
	notes []string
}

type contextKey struct{}

// note keeps what an option was called with.
func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, what)
}

// noted returns each note once, in order.
func (w *world) noted() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.notes)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.notes)
}

// roll returns the names of the clusters, in order.
func (w *world) roll() string {
	var names []string
	for _, s := range w.Status() {
		names = append(names, string(s.Name))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// states returns the states of the clusters, in alphabetical order.
func (w *world) states() string {
	var all []string
	for _, s := range w.Status() {
		all = append(all, string(s.State))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// method opens clusters.
type method func(ctx context.Context, profile *inventory.Profile) (*credentials.Access, error)

func (f method) Resolve(ctx context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	return f(ctx, profile)
}

// failing returns a method that notes profiles and opens none.
func (w *world) failing() credentials.Method {
	return method(func(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
		w.note(profile.Name)
		return nil, errors.New("no")
	})
}

// newWorld runs a provider with these options until the test ends.
func newWorld(t *testing.T, set func(o *clusterinventoryapi.Options, w *world)) *world {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	home, member := mctest.New(t, mctest.Options{Scheme: scheme}), mctest.New(t)
	for namespace, names := range map[string][]string{"default": {"eu", "us"}, "kube-public": {"ap"}} {
		for _, name := range names {
			p := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"name": name}}}
			if name == "ap" {
				p.Annotations = map[string]string{inventory.AnnotationClusterName: "pacific"}
			}
			g.Expect(home.Create(p)).To(Succeed())
		}
	}
	g.Expect(home.Create(&v1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "decision"},
		Decisions:  []v1alpha1.ClusterDecision{{ClusterProfileRef: v1alpha1.ClusterProfileReference{Name: "us"}}},
	})).To(Succeed())

	w := &world{refuse: sync.OnceFunc(func() { member.Fault(mctest.Refuse) })}
	options := clusterinventoryapi.Options{
		Hub: home.Config(),
		Credentials: method(func(context.Context, *inventory.Profile) (*credentials.Access, error) {
			return credentials.FromRESTConfig(member.Config()), nil
		}),
	}
	set(&options, w)
	var err error
	w.Provider, err = clusterinventoryapi.New(options)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "of the provider"))
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx, nobody{}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the provider failed: %v", err)
		}
	})
	return w
}

// nobody has nothing to do in clusters.
type nobody struct{}

func (nobody) Engage(context.Context, multicluster.ClusterName, cluster.Cluster) error { return nil }

const allReady = "Ready Ready Ready"

func TestOptionsHaveTheirEffect(t *testing.T) {
	fake := testclock.NewFakeClock(time.Date(2020, 2, 2, 2, 2, 2, 0, time.UTC))
	never := method(func(ctx context.Context, _ *inventory.Profile) (*credentials.Access, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	shown := map[string]bool{
		"Hub":                      true, // leads each of them to its hub
		"KubeconfigStrategyOption": true, // has tests of its own
	}
	for _, tc := range []struct {
		option string
		set    func(o *clusterinventoryapi.Options, w *world)
		check  func(w *world) string
		want   string
	}{
		{
			"Credentials",
			func(o *clusterinventoryapi.Options, w *world) { o.Credentials = w.failing() },
			(*world).noted, "ap eu us",
		},
		{
			"Namespace",
			func(o *clusterinventoryapi.Options, _ *world) { o.Namespace = "default" },
			(*world).roll, "default/eu default/us",
		},
		{
			"Namespaces",
			func(o *clusterinventoryapi.Options, _ *world) { o.Namespaces = []string{"kube-public"} },
			(*world).roll, "kube-public/ap",
		},
		{
			"LabelSelector",
			func(o *clusterinventoryapi.Options, _ *world) {
				o.LabelSelector = labels.SelectorFromSet(labels.Set{"name": "us"})
			},
			(*world).roll, "default/us",
		},
		{
			"FieldSelector",
			func(o *clusterinventoryapi.Options, _ *world) {
				o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, "eu")
			},
			(*world).roll, "default/eu",
		},
		{
			"Placement",
			func(o *clusterinventoryapi.Options, _ *world) {
				o.Placement = &hub.Placement{Namespace: "default", Name: "decision"}
			},
			(*world).roll, "default/us",
		},
		{
			"TrustAnnotations",
			func(o *clusterinventoryapi.Options, _ *world) { o.TrustAnnotations = true },
			(*world).roll, "default/eu default/us pacific",
		},
		{
			"Selection",
			func(o *clusterinventoryapi.Options, _ *world) {
				o.Selection = inventory.Selection{Labels: labels.SelectorFromSet(labels.Set{"name": "ap"})}
			},
			(*world).roll, "kube-public/ap",
		},
		{
			"IsReady",
			func(o *clusterinventoryapi.Options, w *world) {
				o.IsReady = func(ctx context.Context, clp *inventory.Profile) bool {
					return ctx.Value(contextKey{}) == "of the provider" && clp.Name == "eu"
				}
			},
			(*world).roll, "default/eu",
		},
		{
			"ClusterName",
			func(o *clusterinventoryapi.Options, _ *world) {
				o.ClusterName = func(clp *inventory.Profile) multicluster.ClusterName {
					return multicluster.ClusterName(clp.Name)
				}
			},
			(*world).roll, "ap eu us",
		},
		{
			"ClusterOptions",
			func(o *clusterinventoryapi.Options, w *world) {
				o.ClusterOptions = []cluster.Option{func(*cluster.Options) { w.note("called") }}
			},
			(*world).noted, "called",
		},
		{
			"ClusterOptionsFor",
			func(o *clusterinventoryapi.Options, w *world) {
				o.ClusterOptionsFor = func(clp *inventory.Profile) []cluster.Option {
					return []cluster.Option{func(*cluster.Options) { w.note(clp.Name) }}
				}
			},
			(*world).noted, "ap eu us",
		},
		{
			"RESTOptions",
			func(o *clusterinventoryapi.Options, _ *world) {
				o.RESTOptions = []func(cfg *rest.Config) error{func(cfg *rest.Config) error {
					cfg.UserAgent = "changed"
					return nil
				}}
			},
			func(w *world) string {
				cl, err := w.Get(context.Background(), "default/eu")
				if err != nil {
					return err.Error()
				}
				return cl.GetConfig().UserAgent
			},
			"changed",
		},
		{
			"NewCluster",
			func(o *clusterinventoryapi.Options, w *world) {
				o.NewCluster = func(_ context.Context, clp *inventory.Profile, cfg *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
					w.note(clp.Name)
					return cluster.New(cfg, opts...)
				}
			},
			(*world).noted, "ap eu us",
		},
		{
			"ConnectTimeout",
			func(o *clusterinventoryapi.Options, _ *world) {
				o.Credentials, o.ConnectTimeout = never, time.Millisecond
			},
			func(w *world) string { return w.Status()[0].LastError },
			"no result within 1ms: context canceled",
		},
		{
			"StartupLimit",
			func(o *clusterinventoryapi.Options, _ *world) {
				// By this clock, none is ever late for its place.
				o.Credentials, o.StartupLimit, o.Clock = never, 2, fake
			},
			(*world).states, "Connecting Connecting Pending",
		},
		{
			"Probe",
			func(o *clusterinventoryapi.Options, _ *world) {
				o.Probe = fleet.ProbeOptions{Interval: 10 * time.Millisecond, FailureThreshold: 1}
			},
			func(w *world) string {
				if w.states() == allReady {
					w.refuse()
				}
				return w.states()
			},
			"Degraded Degraded Degraded",
		},
		{
			// The twelfth attempt comes after a few seconds; by default, after more
			// than half an hour.
			"MinBackoff",
			func(o *clusterinventoryapi.Options, w *world) {
				o.Credentials, o.MinBackoff = w.failing(), time.Millisecond
			},
			func(w *world) string { return fmt.Sprint(w.count() >= 3*12) }, "true",
		},
		{
			"MaxBackoff",
			func(o *clusterinventoryapi.Options, w *world) {
				o.Credentials, o.MaxBackoff = w.failing(), time.Millisecond
			},
			func(w *world) string { return fmt.Sprint(w.count() >= 3*12) }, "true",
		},
		{
			"Clock",
			func(o *clusterinventoryapi.Options, _ *world) { o.Clock = fake },
			func(w *world) string { return w.Status()[0].Since.Format(time.RFC3339) }, "2020-02-02T02:02:02Z",
		},
	} {
		shown[tc.option] = true
		t.Run(tc.option, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, tc.set)
			g.Eventually(w.Status).WithTimeout(patience).ShouldNot(BeEmpty())
			check := func() string { return tc.check(w) }
			g.Eventually(check).WithTimeout(15 * time.Second).Should(Equal(tc.want))
			g.Consistently(check, "100ms").Should(Equal(tc.want), "and it stays so")
		})
	}
	for field := range fieldsOf[clusterinventoryapi.Options]() {
		NewWithT(t).Expect(shown).To(HaveKey(field), "an option that is not shown to have an effect")
	}
	t.Run("none is set", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, func(*clusterinventoryapi.Options, *world) {})
		g.Eventually(w.states).WithTimeout(patience).Should(Equal(allReady))
		g.Expect(w.roll()).To(Equal("default/eu default/us kube-public/ap"))
	})
}

func TestNoOptionOfTheHubAndTheFleetIsLeftOut(t *testing.T) {
	g := NewWithT(t)
	own := fieldsOf[clusterinventoryapi.Options]()
	for field := range fieldsOf[hub.Options]() {
		if field != "HTTPClient" {
			g.Expect(own).To(HaveKey(field))
		}
	}
	for field := range fieldsOf[fleet.Options]() {
		if field != "Source" && field != "Connector" {
			g.Expect(own).To(HaveKey(field))
		}
	}
}

func fieldsOf[T any]() map[string]bool {
	names := map[string]bool{}
	for field := range reflect.TypeFor[T]().Fields() {
		names[field.Name] = true
	}
	return names
}
