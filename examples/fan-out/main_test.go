// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestMain(m *testing.M) {
	if !exampletest.Main(main) {
		SetDefaultEventuallyTimeout(mctest.Timeout)
		goleak.VerifyTestMain(m)
	}
}

func TestWrongFlags(t *testing.T) {
	g := NewWithT(t)
	output, exitCode := exampletest.Run(t)
	g.Expect(exitCode).To(Equal(1))
	g.Expect(output).To(ContainSubstring("--clusterprofile-provider-file must be given"))
	output, exitCode = exampletest.Run(t, "a")
	g.Expect(exitCode).To(Equal(1))
	g.Expect(output).To(ContainSubstring(`unexpected argument \"a\"`))
}

// test is a hub with a Rollout for the region eu, two members in it and one elsewhere.
type test struct {
	*WithT
	t          *testing.T
	hub        *exampletest.Hub
	client     client.Client // of the hub
	a, b, west *mctest.Cluster
	stop       func()
}

func labelled(region string) *inventory.Profile {
	return &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"region": region}}}
}

func newTest(t *testing.T) *test {
	t.Helper()
	g := NewWithT(t)
	hub := exampletest.NewHub(t, 3)
	text, err := os.ReadFile("crd.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	crd := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal(text, &crd.Object)).To(Succeed())
	g.Expect(hub.Create(crd)).To(Succeed())
	transport, err := rest.HTTPClientFor(hub.Config())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(hub.Config(), client.Options{Scheme: newScheme(), HTTPClient: transport})
	g.Expect(err).NotTo(HaveOccurred())
	x := &test{WithT: g, t: t, hub: hub, client: c, a: hub.Members.Cluster(0), b: hub.Members.Cluster(1), west: hub.Members.Cluster(2)}
	hub.Join(t, x.a, labelled("eu"))
	hub.Join(t, x.b, labelled("eu"))
	hub.Join(t, x.west, labelled("us"))
	x.start()
	return x
}

// start starts the program.
func (x *test) start() {
	x.t.Helper()
	mgr, err := newManager(x.hub.Config(), x.hub, mctest.ManagerOptions())
	x.Expect(err).NotTo(HaveOccurred())
	x.stop = mctest.StartManager(x.t, mgr)
}

func (x *test) create() *Rollout {
	x.t.Helper()
	r := &Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	r.Spec.ClusterSelector.MatchLabels = map[string]string{"region": "eu"}
	r.Spec.Deployment = runtime.RawExtension{Raw: []byte(`{"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}`)}
	x.Expect(x.client.Create(x.t.Context(), r)).To(Succeed())
	return r
}

// status returns the status of the Rollout in the members, nil if there is no Rollout.
func (x *test) status() []ClusterStatus {
	r := &Rollout{}
	if err := x.client.Get(x.t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, r); err != nil {
		x.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		return nil
	}
	return append([]ClusterStatus{}, r.Status.Clusters...)
}

// replicas returns those of the Deployment of a member, -1 if there is none.
func replicas(c *mctest.Cluster) func() int32 {
	return func() int32 {
		d := &appsv1.Deployment{}
		if err := c.Get(client.ObjectKey{Namespace: "default", Name: "web"}, d); err != nil || d.Spec.Replicas == nil {
			return -1
		}
		return *d.Spec.Replicas
	}
}

func TestRollout(t *testing.T) {
	x := newTest(t)
	r := x.create()
	x.Eventually(replicas(x.a)).Should(BeEquivalentTo(2))
	x.Eventually(replicas(x.b)).Should(BeEquivalentTo(2))
	x.Expect(replicas(x.west)()).To(BeEquivalentTo(-1), "it is not selected")

	d := &appsv1.Deployment{}
	x.Expect(x.a.Get(client.ObjectKeyFromObject(r), d)).To(Succeed())
	x.Expect(d.OwnerReferences).To(BeEmpty())
	d.Status.AvailableReplicas = 1
	x.Expect(x.a.UpdateStatus(d)).To(Succeed())
	x.Eventually(x.status).Should(ConsistOf(ClusterStatus{Name: "default/cluster-0", Generation: 1, AvailableReplicas: 1}, ClusterStatus{Name: "default/cluster-1", Generation: 1}))

	x.Expect(x.client.Get(t.Context(), client.ObjectKeyFromObject(r), r)).To(Succeed())
	before := r.DeepCopyObject().(*Rollout)
	r.Spec.Deployment.Raw = []byte(`{"replicas": 3, "selector": {"matchLabels": {"app": "web"}}}`)
	x.Expect(x.client.Patch(t.Context(), r, client.MergeFrom(before))).To(Succeed())
	x.Eventually(replicas(x.b)).Should(BeEquivalentTo(3))
	x.Expect(x.b.Delete(d)).To(Succeed())
	x.Eventually(replicas(x.b)).Should(BeEquivalentTo(3), "a deleted Deployment is created again")

	profile := &inventory.Profile{}
	x.Expect(x.hub.Get(client.ObjectKey{Namespace: "default", Name: x.b.Name()}, profile)).To(Succeed())
	profile.Labels["region"] = "us"
	x.Expect(x.hub.Update(profile)).To(Succeed())
	x.Eventually(replicas(x.b)).Should(BeEquivalentTo(-1), "it is no longer selected")
	x.Eventually(x.status).Should(ConsistOf(ClusterStatus{Name: "default/cluster-0", Generation: 2, AvailableReplicas: 1}))
}

func TestForeignDeployment(t *testing.T) {
	x := newTest(t)
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(7))}}
	x.Expect(x.a.Create(foreign)).To(Succeed())
	r := x.create()
	x.Eventually(x.status).Should(ConsistOf(
		ClusterStatus{Name: "default/cluster-0", Error: "a Deployment of this name exists and is not of this Rollout"}, ClusterStatus{Name: "default/cluster-1", Generation: 1}))
	x.Expect(x.client.Delete(t.Context(), r)).To(Succeed())
	x.Eventually(x.status).Should(BeNil())
	x.Expect(replicas(x.a)()).To(BeEquivalentTo(7), "it is not deleted")
	x.Expect(replicas(x.b)()).To(BeEquivalentTo(-1))
}

// In all cases, a member is down when the Rollout is deleted.
func TestDownAtDeletion(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault mctest.Fault
		then  func(*test)
		left  bool
	}{
		{"it comes back", mctest.Refuse, func(*test) {}, false},
		{"it hangs and comes back", mctest.Hang, func(*test) {}, false},
		{"it comes back to another process", mctest.Refuse, func(x *test) { x.stop(); x.start() }, false},
		{"it is unhealthy for another process", mctest.Refuse, func(x *test) {
			x.stop()
			profile := &inventory.Profile{}
			x.Expect(x.hub.Get(client.ObjectKey{Namespace: "default", Name: x.b.Name()}, profile)).To(Succeed())
			profile.Status.Conditions[0].Status = metav1.ConditionFalse
			x.Expect(x.hub.UpdateStatus(profile)).To(Succeed())
			x.start()
			x.Consistently(x.status, time.Second).Should(HaveLen(1), "it has not left")
			profile.Status.Conditions[0].Status = metav1.ConditionTrue
			x.Expect(x.hub.UpdateStatus(profile)).To(Succeed())
		}, false},
		{"it leaves", mctest.Refuse, func(x *test) { x.hub.Leave(x.t, x.b) }, true},
		{"it leaves another process that never reached it", mctest.Refuse, func(x *test) { x.stop(); x.start(); x.hub.Leave(x.t, x.b) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newTest(t)
			r := x.create()
			x.Eventually(x.status).Should(HaveLen(2))
			x.Eventually(replicas(x.a)).Should(BeEquivalentTo(2))
			x.Eventually(replicas(x.b)).Should(BeEquivalentTo(2))

			x.b.Fault(test.fault)
			x.Expect(x.client.Delete(t.Context(), r)).To(Succeed())
			x.Eventually(replicas(x.a)).Should(BeEquivalentTo(-1), "the other member does not wait")
			x.Eventually(x.status).Should(ConsistOf(HaveField("Name", "default/cluster-1")))
			test.then(x)
			if !test.left {
				x.Consistently(x.status, 300*time.Millisecond).Should(HaveLen(1))
				x.b.Clear()
				x.Eventually(replicas(x.b), mctest.Timeout).Should(BeEquivalentTo(-1))
			}
			x.Eventually(x.status).Should(BeNil(), "the Rollout is gone")
		})
	}
}
