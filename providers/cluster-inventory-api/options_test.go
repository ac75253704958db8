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

// fixture is a provider on a hub with the profiles default/eu, default/us and
// kube-public/ap, all of the same member.
type fixture struct {
	*clusterinventoryapi.Provider
	refuse func() // makes the member refuse connections

	mu    sync.Mutex
	calls []string
}

type contextKey struct{}

// record records a call of an option.
func (f *fixture) record(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

// called returns each recorded call once, sorted.
func (f *fixture) called() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := slices.Clone(f.calls)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

func (f *fixture) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// names returns the names of the clusters, sorted.
func (f *fixture) names() string {
	var names []string
	for _, s := range f.Status() {
		names = append(names, string(s.Name))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// states returns the states of the clusters, sorted.
func (f *fixture) states() string {
	var all []string
	for _, s := range f.Status() {
		all = append(all, string(s.State))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// method is a credentials.Method.
type method func(ctx context.Context, profile *inventory.Profile) (*credentials.Access, error)

func (m method) Resolve(ctx context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	return m(ctx, profile)
}

// failing returns a method that records profiles and fails.
func (f *fixture) failing() credentials.Method {
	return method(func(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
		f.record(profile.Name)
		return nil, errors.New("no")
	})
}

// newFixture runs a provider with these options until the test ends.
func newFixture(t *testing.T, set func(o *clusterinventoryapi.Options, f *fixture)) *fixture {
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
			createHealthy(g, home, p)
		}
	}
	g.Expect(home.Create(&v1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "decision"},
		Decisions:  []v1alpha1.ClusterDecision{{ClusterProfileRef: v1alpha1.ClusterProfileReference{Name: "us"}}},
	})).To(Succeed())

	f := &fixture{refuse: sync.OnceFunc(func() { member.Fault(mctest.Refuse) })}
	options := clusterinventoryapi.Options{
		Hub: home.Config(),
		Credentials: method(func(context.Context, *inventory.Profile) (*credentials.Access, error) {
			return credentials.FromRESTConfig(member.Config()), nil
		}),
		KeepDuplicates: true, // all profiles are of one cluster
	}
	set(&options, f)
	if options.Namespace == "" && options.Namespaces == nil {
		options.Namespaces = []string{metav1.NamespaceAll}
	}
	var err error
	f.Provider, err = clusterinventoryapi.New(options)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "of the provider"))
	ended := make(chan error, 1)
	go func() { ended <- f.Start(ctx, noAware{}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the provider failed: %v", err)
		}
	})
	return f
}

// noAware ignores clusters.
type noAware struct{}

func (noAware) Engage(context.Context, multicluster.ClusterName, cluster.Cluster) error { return nil }

const allReady = "Ready Ready Ready"

func TestOptions(t *testing.T) {
	fake := testclock.NewFakeClock(time.Date(2020, 2, 2, 2, 2, 2, 0, time.UTC))
	never := method(func(ctx context.Context, _ *inventory.Profile) (*credentials.Access, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	tested := map[string]bool{
		"Hub":                      true, // set in each case
		"Connection":               true, // see TestConnectionOptionsArePassedOn
		"KubeconfigStrategyOption": true, // see strategy_test.go
	}
	for _, tc := range []struct {
		option string
		set    func(o *clusterinventoryapi.Options, f *fixture)
		check  func(f *fixture) string
		want   string
	}{
		{
			"Credentials",
			func(o *clusterinventoryapi.Options, f *fixture) { o.Credentials = f.failing() },
			(*fixture).called, "ap eu us",
		},
		{
			"Namespace",
			func(o *clusterinventoryapi.Options, _ *fixture) { o.Namespace = "default" },
			(*fixture).names, "default/eu default/us",
		},
		{
			"Namespaces",
			func(o *clusterinventoryapi.Options, _ *fixture) { o.Namespaces = []string{"kube-public"} },
			(*fixture).names, "kube-public/ap",
		},
		{
			"LabelSelector",
			func(o *clusterinventoryapi.Options, _ *fixture) {
				o.LabelSelector = labels.SelectorFromSet(labels.Set{"name": "us"})
			},
			(*fixture).names, "default/us",
		},
		{
			"FieldSelector",
			func(o *clusterinventoryapi.Options, _ *fixture) {
				o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, "eu")
			},
			(*fixture).names, "default/eu",
		},
		{
			"Placement",
			func(o *clusterinventoryapi.Options, _ *fixture) {
				o.Placement = &hub.Placement{Namespace: "default", Name: "decision"}
			},
			(*fixture).names, "default/us",
		},
		{
			"TrustAnnotations",
			func(o *clusterinventoryapi.Options, _ *fixture) { o.TrustAnnotations = true },
			(*fixture).names, "default/eu default/us pacific",
		},
		{
			"Selection",
			func(o *clusterinventoryapi.Options, _ *fixture) {
				o.Selection = inventory.Selection{Labels: labels.SelectorFromSet(labels.Set{"name": "ap"})}
			},
			(*fixture).names, "kube-public/ap",
		},
		{
			"IsReady",
			func(o *clusterinventoryapi.Options, f *fixture) {
				o.IsReady = func(ctx context.Context, clp *inventory.Profile) bool {
					return ctx.Value(contextKey{}) == "of the provider" && clp.Name == "eu"
				}
			},
			(*fixture).names, "default/eu",
		},
		{
			"ClusterName",
			func(o *clusterinventoryapi.Options, _ *fixture) {
				o.ClusterName = func(clp *inventory.Profile) multicluster.ClusterName {
					return multicluster.ClusterName(clp.Name)
				}
			},
			(*fixture).names, "ap eu us",
		},
		{
			"KeepDuplicates",
			func(o *clusterinventoryapi.Options, _ *fixture) { o.KeepDuplicates = false },
			(*fixture).states, "Duplicate Duplicate Ready",
		},
		{
			"TrustedNamespaces",
			func(o *clusterinventoryapi.Options, _ *fixture) {
				o.KeepDuplicates, o.TrustedNamespaces = false, []string{"default", "kube-public"}
			},
			func(f *fixture) string {
				for _, s := range f.Status() {
					if s.State == fleet.Ready {
						return fmt.Sprint(len(s.Alternates))
					}
				}
				return ""
			},
			"2",
		},
		{
			"ClusterOptions",
			func(o *clusterinventoryapi.Options, f *fixture) {
				o.ClusterOptions = []cluster.Option{func(*cluster.Options) { f.record("called") }}
			},
			(*fixture).called, "called",
		},
		{
			"ClusterOptionsFor",
			func(o *clusterinventoryapi.Options, f *fixture) {
				o.Connection.ClusterOptionsFor = func(clp *inventory.Profile) []cluster.Option {
					return []cluster.Option{func(*cluster.Options) { f.record(clp.Name) }}
				}
			},
			(*fixture).called, "ap eu us",
		},
		{
			"RESTOptions",
			func(o *clusterinventoryapi.Options, _ *fixture) {
				o.Connection.RESTOptions = []func(cfg *rest.Config) error{func(cfg *rest.Config) error {
					cfg.UserAgent = "changed"
					return nil
				}}
			},
			func(f *fixture) string {
				cl, err := f.Get(context.Background(), "default/eu")
				if err != nil {
					return err.Error()
				}
				return cl.GetConfig().UserAgent
			},
			"changed",
		},
		{
			"NewCluster",
			func(o *clusterinventoryapi.Options, f *fixture) {
				o.NewCluster = func(_ context.Context, clp *inventory.Profile, cfg *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
					f.record(clp.Name)
					return cluster.New(cfg, opts...)
				}
			},
			(*fixture).called, "ap eu us",
		},
		{
			"ConnectTimeout",
			func(o *clusterinventoryapi.Options, _ *fixture) {
				o.Credentials, o.Connection.ConnectTimeout = never, time.Millisecond
			},
			func(f *fixture) string { return fmt.Sprint(strings.Contains(f.Status()[0].LastError, "1ms")) }, "true",
		},
		{
			"StartupLimit",
			func(o *clusterinventoryapi.Options, _ *fixture) {
				// By this clock, startup slots are held without limit.
				o.Credentials, o.Connection.StartupLimit, o.Connection.Clock = never, 2, fake
			},
			(*fixture).states, "Connecting Connecting Pending",
		},
		{
			"Probe",
			func(o *clusterinventoryapi.Options, _ *fixture) {
				o.Connection.Probe = fleet.ProbeOptions{Interval: 10 * time.Millisecond, FailureThreshold: 1}
			},
			func(f *fixture) string {
				if f.states() == allReady {
					f.refuse()
				}
				return f.states()
			},
			"Degraded Degraded Degraded",
		},
		{
			// The twelfth attempt follows after seconds, by default after more than half
			// an hour.
			"MinBackoff",
			func(o *clusterinventoryapi.Options, f *fixture) {
				o.Credentials, o.Connection.MinBackoff = f.failing(), time.Millisecond
			},
			func(f *fixture) string { return fmt.Sprint(f.count() >= 3*12) }, "true",
		},
		{
			"MaxBackoff",
			func(o *clusterinventoryapi.Options, f *fixture) {
				o.Credentials, o.Connection.MaxBackoff = f.failing(), time.Millisecond
			},
			func(f *fixture) string { return fmt.Sprint(f.count() >= 3*12) }, "true",
		},
		{
			"Clock",
			func(o *clusterinventoryapi.Options, _ *fixture) { o.Connection.Clock = fake },
			func(f *fixture) string { return f.Status()[0].Since.Format(time.RFC3339) }, "2020-02-02T02:02:02Z",
		},
	} {
		tested[tc.option] = true
		t.Run(tc.option, func(t *testing.T) {
			g := NewWithT(t)
			f := newFixture(t, tc.set)
			g.Eventually(f.Status).WithTimeout(timeout).ShouldNot(BeEmpty())
			check := func() string { return tc.check(f) }
			g.Eventually(check).WithTimeout(15 * time.Second).Should(Equal(tc.want))
			g.Consistently(check, "100ms").Should(Equal(tc.want), "and remains so")
		})
	}
	for field := range fieldsOf[clusterinventoryapi.Options]() {
		NewWithT(t).Expect(tested).To(HaveKey(field), "an option without a test")
	}
	t.Run("no option is set", func(t *testing.T) {
		g := NewWithT(t)
		f := newFixture(t, func(*clusterinventoryapi.Options, *fixture) {})
		g.Eventually(f.states).WithTimeout(timeout).Should(Equal(allReady))
		g.Expect(f.names()).To(Equal("default/eu default/us kube-public/ap"))
	})
}

func TestOptionsOfHubAndFleet(t *testing.T) {
	g := NewWithT(t)
	own := fieldsOf[clusterinventoryapi.Options]()
	for field := range fieldsOf[hub.Options]() {
		if field != "Cache" { // that of the manager
			g.Expect(own).To(HaveKey(field))
		}
	}
	for field := range fieldsOf[fleet.Options]() {
		if field != "Source" && field != "Connector" && field != "TrustDomain" { // TrustedNamespaces sets it
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
