// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-dev/rollcall/internal/cli"
	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/publish"
)

// published is a source that a test changes.
type published struct{ updates chan []*inventory.Profile }

func (p published) Run(ctx context.Context, sink inventory.Sink) error {
	known, synced := map[inventory.Key]bool{}, false
	for {
		select {
		case <-ctx.Done():
			return nil
		case profiles := <-p.updates:
			listed := map[inventory.Key]bool{}
			for _, profile := range profiles {
				listed[inventory.KeyOf(profile)] = true
				sink.Put(profile)
			}
			for key := range known {
				if !listed[key] {
					sink.Remove(key)
				}
			}
			known = listed
			if !synced {
				synced = true
				sink.Synced()
			}
		}
	}
}

func publishable(t *testing.T, name string, change ...func(*inventory.Synthetic)) *inventory.Profile {
	t.Helper()
	s := inventory.Synthetic{
		ClusterName: name, Manager: "kind", Labels: map[string]string{"tier": "gold"}, Properties: map[string]string{"region": "eu"},
		Conditions: []metav1.Condition{{Type: inventory.ConditionJoined, Status: metav1.ConditionTrue, Reason: "Listed"}},
		AccessProviders: []inventory.AccessProvider{
			{Name: "kind", Cluster: clientcmdv1.Cluster{Server: "https://127.0.0.1:6443"}},
			{Name: "second", Cluster: clientcmdv1.Cluster{Server: "https://127.0.0.1:7443"}},
		},
	}
	for _, c := range change {
		c(&s)
	}
	profile, err := inventory.Synthesize(s)
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

func probeOf(member *realfleet.Member) publish.ProbeFunc {
	return func(ctx context.Context, _ *inventory.Profile) (publish.ProbeResult, error) {
		return publish.ProbeCluster(ctx, member.Config)
	}
}

// startPublisher runs a publisher until the function returned is called.
func startPublisher(t *testing.T, options publish.Options) (*publish.Publisher, func()) {
	t.Helper()
	p, err := publish.New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return p, stop
}

func TestPublishInBothVersions(t *testing.T) {
	h := newVersionedHub(t)
	member := realPlanes(t).east
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			h.serve(t, version)
			get := func(name string) *inventory.Profile {
				u, profile := in(t, version, &inventory.Profile{}), &inventory.Profile{}
				if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, u); err == nil {
					err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, profile)
					g.Expect(err).NotTo(HaveOccurred())
				}
				return profile
			}
			health := func(name string) func() string {
				return func() string { return inventory.HealthOf(get(name)).String() }
			}
			src := published{make(chan []*inventory.Profile)}
			options := publish.Options{
				Hub: h.Config, Source: src, Namespace: "default", ManagerName: "laptop",
				Probe: probeOf(member), ProbeInterval: 50 * time.Millisecond, WriteInterval: time.Millisecond,
			}
			theirs := in(t, version, versioned("theirs", "1"))
			g.Expect(h.client.Create(t.Context(), theirs)).To(Succeed())
			_, stop := startPublisher(t, options)
			src.updates <- []*inventory.Profile{publishable(t, "eu"), publishable(t, "us"), publishable(t, "theirs")}
			g.Eventually(health("eu")).Should(Equal("Healthy (Ready)"))
			g.Eventually(health("us")).Should(Equal("Healthy (Ready)"))
			eu := get("eu")
			g.Expect(inventory.Validate(eu)).To(Succeed())
			g.Expect(inventory.ClusterID(eu)).To(HaveLen(36), "the UID of kube-system")
			g.Expect(inventory.MemberID(eu)).To(Equal(inventory.ClusterID(eu)))
			g.Expect(eu.Status.Version.Kubernetes).To(HavePrefix("v1."))
			g.Expect(get("theirs").ResourceVersion).To(Equal(theirs.GetResourceVersion()))

			src.updates <- []*inventory.Profile{publishable(t, "eu", func(s *inventory.Synthetic) {
				s.Labels, s.Properties, s.AccessProviders = nil, nil, s.AccessProviders[:1]
				s.Conditions = nil
			})}
			g.Eventually(func() bool { return get("us").UID == "" }).Should(BeTrue(), "removed")
			g.Eventually(func() map[string]string { return get("eu").Labels }).ShouldNot(HaveKey("tier"))
			g.Eventually(func() []inventory.AccessProvider { return get("eu").Status.AccessProviders }).Should(HaveLen(1))
			g.Expect(get("eu").Status.Conditions).To(HaveLen(1))
			g.Expect(get("eu").Status.Properties).To(HaveLen(1))
			stop()

			before := get("eu")
			p, _ := startPublisher(t, options)
			src.updates <- []*inventory.Profile{publishable(t, "eu", func(s *inventory.Synthetic) {
				s.Labels, s.Properties, s.AccessProviders, s.Conditions = nil, nil, s.AccessProviders[:1], nil
			})}
			g.Eventually(p.Status).Should(ContainElement(publish.Status{Name: "eu", ClusterName: "eu", Outcome: publish.Unchanged}))
			g.Expect(get("eu").ResourceVersion).To(Equal(before.ResourceVersion), "a restart changes nothing")

			h.serve(t, "v1alpha1", "v1alpha2") // as other tests expect
			g.Expect(h.client.DeleteAllOf(t.Context(), in(t, version, &inventory.Profile{}), client.InNamespace("default"))).To(Succeed())
		})
	}
}

func TestPublishOnceAndDryRun(t *testing.T) {
	g := NewWithT(t)
	hub := realPlanes(t).hub
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "published-once"}}
	g.Expect(hub.Create(t.Context(), namespace)).To(Succeed())
	src := published{make(chan []*inventory.Profile)}
	p, err := publish.New(publish.Options{Hub: hub.Config, Source: src, Namespace: namespace.Name, ManagerName: "laptop"})
	g.Expect(err).NotTo(HaveOccurred())
	run := func(once func(context.Context) ([]publish.Status, error), profiles ...*inventory.Profile) string {
		t.Helper()
		go func() { src.updates <- profiles }()
		all, err := once(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		var texts []string
		for _, s := range all {
			texts = append(texts, strings.TrimSpace(s.Name+" "+string(s.Outcome)+" "+s.Message))
		}
		return strings.Join(texts, ", ")
	}
	a, b := publishable(t, "a"), publishable(t, "b")
	changed := publishable(t, "a", func(s *inventory.Synthetic) { s.Labels = nil })
	g.Expect(run(p.DryRun, a, b)).To(Equal("a Created, b Created"))
	g.Expect(run(p.Once, a, b)).To(Equal("a Created, b Created"), "the dry run has created nothing")
	g.Expect(run(p.Once, a, b)).To(Equal("a Unchanged, b Unchanged"))
	g.Expect(run(p.DryRun, changed)).To(Equal("a Updated, b Removed"))
	g.Expect(run(p.Once, changed)).To(Equal("a Updated, b Removed"), "the dry run has changed nothing")
	g.Expect(run(p.Once, changed)).To(Equal("a Unchanged"))
}

// The Role of config/publish is enough to publish, and for nothing else.
func TestPublishRights(t *testing.T) {
	g := NewWithT(t)
	hub := realPlanes(t).hub
	namespace := "published"
	g.Expect(hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "publish", "rbac.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	account, role, binding := &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}
	documents := strings.Split(string(content), "\n---\n")
	g.Expect(documents).To(HaveLen(3))
	for i, object := range []client.Object{account, role, binding} {
		g.Expect(yaml.UnmarshalStrict([]byte(documents[i]), object)).To(Succeed())
		object.SetNamespace(namespace)
	}
	for i := range binding.Subjects {
		binding.Subjects[i].Namespace = namespace
	}
	g.Expect(hub.Create(t.Context(), account, role, binding)).To(Succeed())
	token, err := hub.IssueToken(t.Context(), account, nil)
	g.Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(hub.Config)
	config.BearerToken = token

	src := published{make(chan []*inventory.Profile)}
	options := publish.Options{
		Hub: config, Source: src, Namespace: namespace, ManagerName: "laptop",
		Probe: probeOf(realPlanes(t).east), ProbeInterval: 50 * time.Millisecond, WriteInterval: time.Millisecond,
	}
	startPublisher(t, options)
	src.updates <- []*inventory.Profile{publishable(t, "eu"), publishable(t, "us")}
	stored := &inventory.Profile{}
	g.Eventually(func() string {
		_ = hub.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "eu"}, stored)
		return inventory.HealthOf(stored).String()
	}).Should(Equal("Healthy (Ready)"))
	src.updates <- []*inventory.Profile{publishable(t, "us")}
	g.Eventually(func() bool {
		return apierrors.IsNotFound(hub.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "eu"}, stored))
	}).Should(BeTrue())

	// Leader election, as the command does it.
	limited, err := client.New(config, client.Options{Scheme: hub.Client.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(apierrors.IsForbidden(limited.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace)))).To(BeTrue())
	g.Expect(apierrors.IsForbidden(limited.List(t.Context(), &v1alpha1.ClusterProfileList{}, client.InNamespace(realfleet.FleetNamespace)))).To(BeTrue())
	g.Expect(leads(t, config, namespace)).To(Succeed())
}

// The API server accepts the Deployment, and its Pods in a restricted namespace.
func TestPublishDeployment(t *testing.T) {
	g := NewWithT(t)
	hub := realPlanes(t).hub
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "publish", "deployment.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	deployment := &appsv1.Deployment{}
	g.Expect(yaml.UnmarshalStrict(content, deployment)).To(Succeed())
	deployment.Namespace = "restricted"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: deployment.Namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	g.Expect(hub.Create(t.Context(), namespace)).To(Succeed())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "publish"}, Spec: deployment.Spec.Template.Spec}
	pod.Spec.ServiceAccountName = "" // it does not exist here
	for _, object := range []client.Object{deployment, pod} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		g.Expect(err).NotTo(HaveOccurred())
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(map[client.Object]schema.GroupVersionKind{
			deployment: appsv1.SchemeGroupVersion.WithKind("Deployment"), pod: corev1.SchemeGroupVersion.WithKind("Pod"),
		}[object])
		g.Expect(hub.Client.Create(t.Context(), u, client.DryRunAll)).To(Succeed())
	}
	// Otherwise the namespace would accept any Pod.
	pod.Spec.SecurityContext, pod.Spec.Containers[0].SecurityContext = nil, nil
	g.Expect(hub.Client.Create(t.Context(), pod, client.DryRunAll)).To(MatchError(ContainSubstring("violates PodSecurity")))

	args := append([]string{"mc-credential"}, deployment.Spec.Template.Spec.Containers[0].Args...)
	out := &strings.Builder{}
	code := cli.Run(t.Context(), command.NewTerminal(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out}), append(args, "--help"))
	g.Expect(code).To(BeZero(), out)
}

// Fields of an API version that is no longer served are removed as well.
func TestPublishAcrossVersions(t *testing.T) {
	g := NewWithT(t)
	h := newVersionedHub(t)
	h.serve(t, "v1alpha1")
	src := published{make(chan []*inventory.Profile)}
	startPublisher(t, publish.Options{Hub: h.Config, Source: src, Namespace: "default", ManagerName: "laptop", WriteInterval: time.Millisecond})
	get := func(version string) *unstructured.Unstructured {
		u := in(t, version, &inventory.Profile{})
		_ = h.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "eu"}, u)
		return u
	}
	src.updates <- []*inventory.Profile{publishable(t, "eu")}
	g.Eventually(func() map[string]string { return get("v1alpha1").GetLabels() }).Should(HaveKey("tier"))
	h.serve(t, "v1alpha2")
	src.updates <- []*inventory.Profile{publishable(t, "eu", func(s *inventory.Synthetic) { s.Labels = map[string]string{"added": "1"} })}
	g.Eventually(func() map[string]string { return get("v1alpha2").GetLabels() }).Should(HaveKey("added"))
	g.Eventually(func() map[string]string { return get("v1alpha2").GetLabels() }).WithTimeout(5 * time.Second).ShouldNot(HaveKey("tier"))
	h.serve(t, "v1alpha1", "v1alpha2")
	g.Expect(h.client.DeleteAllOf(t.Context(), get("v1alpha1"), client.InNamespace("default"))).To(Succeed())
}

// leads becomes the leader by the Lease that the Role names, and gives it up.
func leads(t *testing.T, config *rest.Config, namespace string) error {
	t.Helper()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		LeaderElection: true, LeaderElectionID: "mc-credential-publish", LeaderElectionNamespace: namespace,
		LeaderElectionReleaseOnCancel: true, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	led := false
	if err := mgr.Add(manager.RunnableFunc(func(context.Context) error {
		led = true
		cancel()
		return nil
	})); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	if !led {
		return errors.New("did not become the leader")
	}
	return nil
}
