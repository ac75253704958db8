// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

// noticeQuickly lets the fleet notice within a second that a cluster is gone.
func noticeQuickly(o *clusterinventoryapi.Options) {
	o.Connection.Probe = fleet.ProbeOptions{Interval: 200 * time.Millisecond, Timeout: time.Second, FailureThreshold: 2}
	o.Connection.MaxBackoff = time.Second
}

func trustBoth(o *clusterinventoryapi.Options) {
	o.TrustedNamespaces = []string{realfleet.FleetNamespace, realfleet.SecondNamespace}
}

// again adds another profile of a member, with another address and token, until the
// test ends.
func (e *hubEnv) again(m *realfleet.Member) *realfleet.Member {
	e.t.Helper()
	second, err := m.Again(e.t.Context(), realfleet.SecondNamespace)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(second.Network.Close)
	e.t.Cleanup(func() { checkNotLogged(e.t, second.Token) })
	e.add(second)
	return second
}

// statusOf returns the status of the profile.
func (e *hubEnv) statusOf(namespace, name string) func() fleet.ClusterStatus {
	return func() fleet.ClusterStatus {
		for _, status := range e.provider.Status() {
			if status.Profile == (inventory.Key{Namespace: namespace, Name: name}) {
				return status
			}
		}
		return fleet.ClusterStatus{}
	}
}

func isDuplicateOf(m *realfleet.Member) OmegaMatcher {
	return And(HaveField("State", fleet.Duplicate), HaveField("DuplicateOf", memberName(m)))
}

// listCounter counts the requests for all ConfigMaps.
type listCounter struct{ atomic.Int64 }

func (c *listCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		query := req.URL.Query()
		// A limit of 1 only asks for the resource version.
		isList := query.Get("watch") == "" && query.Get("limit") != "1" || query.Get("sendInitialEvents") == "true"
		if isList && strings.HasSuffix(req.URL.Path, "/configmaps") {
			c.Add(1)
		}
		return next.RoundTrip(req)
	})
}

// checkTookOver checks that the member's second profile is in use, and that its
// engagement has gone on.
func (e *hubEnv) checkTookOver(first, second *realfleet.Member, held kubernetes.Interface, lists *listCounter) {
	e.t.Helper()
	g := NewWithT(e.t)
	g.Eventually(e.provider.Status).Should(ContainElement(
		And(HaveField("Name", memberName(first)), HaveField("Profile.Namespace", second.Namespace), HaveField("State", fleet.Ready))))
	g.Eventually(e.reconciled(first, "meanwhile")).Should(BeTrue(), "no event is missed")
	_, err := held.CoreV1().ConfigMaps("default").Get(e.t.Context(), "meanwhile", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "a client that is held goes on")
	e.create(first, "after")
	g.Eventually(e.reconciled(first, "after")).Should(BeTrue())
	g.Expect(lists.Load()).To(BeEquivalentTo(1), "nothing is listed again")
	g.Expect(e.engagements(first)).To(Equal(1))
	g.Expect(e.engagements(second)).To(BeZero())
}

// held returns a client that is made from the engaged cluster.
func (e *hubEnv) held(m *realfleet.Member) kubernetes.Interface {
	e.t.Helper()
	cl, err := e.mgr.GetCluster(e.t.Context(), memberName(m))
	if err != nil {
		e.t.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(cl.GetConfig())
	if err != nil {
		e.t.Fatal(err)
	}
	return clientset
}

func TestMemberWithTwoProfiles(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(e *hubEnv, first *realfleet.Member)
	}{
		{"the first is deleted", func(e *hubEnv, first *realfleet.Member) {
			e.create(first, "meanwhile")
			e.remove(first)
		}},
		{"the address of the first is gone", func(e *hubEnv, first *realfleet.Member) {
			first.Network.Close()
			e.create(first, "meanwhile")
		}},
		{"the address is gone while the hub is", func(e *hubEnv, first *realfleet.Member) {
			e.network.SetDown(true)
			first.Network.Close()
			e.create(first, "meanwhile")
		}},
		{"the first is deleted while the hub is gone", func(e *hubEnv, first *realfleet.Member) {
			e.network.SetDown(true)
			e.remove(first)
			e.create(first, "meanwhile")
			NewWithT(e.t).Eventually(e.reconciled(first, "meanwhile")).Should(BeTrue())
			e.network.SetDown(false)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			lists := &listCounter{}
			e := newHubEnv(t, trustBoth, noticeQuickly, func(o *clusterinventoryapi.Options) {
				o.Connection.RESTOptions = []func(*rest.Config) error{func(c *rest.Config) error { c.Wrap(lists.wrap); return nil }}
			})
			first, err := e.east.Again(t.Context(), realfleet.FleetNamespace) // whose address the test closes
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(first.Network.Close)
			e.add(first)
			e.start()
			e.create(first, "before")
			g.Eventually(e.reconciled(first, "before")).Should(BeTrue())
			second := e.again(first) // late
			g.Eventually(e.statusOf(second.Namespace, second.Name)).Should(isDuplicateOf(first))
			g.Expect(e.statusOf(first.Namespace, first.Name)().Alternates).To(
				ConsistOf(inventory.Key{Namespace: second.Namespace, Name: second.Name}))
			g.Expect(lists.Load()).To(BeEquivalentTo(1))
			held := e.held(first)
			tc.fail(e, first)
			e.checkTookOver(first, second, held, lists)
		})
	}
}

// impostor is a server that claims the UID of another cluster, and records what it
// receives.
type impostor struct {
	*httptest.Server
	mu       sync.Mutex // guards what follows
	requests []string   // paths
	tokens   map[string]bool
}

func newImpostor(t *testing.T, kubeSystem *corev1.Namespace) *impostor {
	t.Helper()
	i := &impostor{tokens: map[string]bool{}}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.requests = append(i.requests, r.URL.Path)
		i.tokens[r.Header.Get("Authorization")] = true
		i.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/namespaces/"+metav1.NamespaceSystem {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(kubeSystem)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *impostor) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
}

func (i *impostor) received() (requests []string, tokens []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for token := range i.tokens {
		tokens = append(tokens, token)
	}
	return append(requests, i.requests...), tokens
}

// letIdentify lets all users of the member read its UID until the test ends.
func (e *hubEnv) letIdentify(m *realfleet.Member) *corev1.Namespace {
	e.t.Helper()
	meta := metav1.ObjectMeta{Name: "identity"}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{metav1.NamespaceSystem}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}}}
	if err := m.Create(e.t.Context(), role, binding); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		NewWithT(e.t).Expect(m.Client.Delete(context.Background(), binding)).To(Succeed())
		NewWithT(e.t).Expect(m.Client.Delete(context.Background(), role)).To(Succeed())
	})
	namespace := &corev1.Namespace{}
	if err := m.Client.Get(e.t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		e.t.Fatal(err)
	}
	namespace.APIVersion, namespace.Kind = "v1", "Namespace"
	return namespace
}

// forge adds a profile like the member's, in another namespace, that leads to the
// impostor.
func (e *hubEnv) forge(m *realfleet.Member, name string, i *impostor, change func(*inventory.Profile)) {
	e.t.Helper()
	g := NewWithT(e.t)
	forged := &inventory.Profile{}
	g.Expect(e.hub.Client.Get(e.t.Context(), client.ObjectKey{Namespace: m.Namespace, Name: m.Name}, forged)).To(Succeed())
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: realfleet.TokenNamespace, Name: name, Annotations: map[string]string{tokensecret.AnnotationServer: i.URL},
		},
		Data: map[string][]byte{"token": []byte("its-own"), "ca.crt": i.ca()},
	}
	g.Expect(e.hub.Create(e.t.Context(), secret)).To(Succeed())
	e.t.Cleanup(func() { NewWithT(e.t).Expect(e.hub.Client.Delete(context.Background(), secret)).To(Succeed()) })
	forged.ObjectMeta = metav1.ObjectMeta{Namespace: realfleet.SecondNamespace, Name: name, Labels: forged.Labels}
	access := &forged.Status.AccessProviders[0].Cluster
	access.Server, access.CertificateAuthorityData = i.URL, i.ca()
	access.Extensions[0].Extension.Raw = []byte(`{"secretRef":{"namespace":"` + realfleet.TokenNamespace + `","name":"` + name + `","key":"token"}}`)
	change(forged)
	g.Expect(tryPut(e.t, e.hub, forged)).To(Succeed())
}

// A profile in another namespace that claims to be of a cluster, and a server that
// claims its UID, get neither its name nor its requests.
func TestForgedDuplicate(t *testing.T) {
	g := NewWithT(t)
	e := newHubEnv(t, noticeQuickly)
	east := e.east
	i := newImpostor(t, e.letIdentify(east))
	e.add(east)
	e.start()
	e.create(east, "before")
	g.Eventually(e.reconciled(east, "before")).Should(BeTrue())
	g.Eventually(e.statusOf(east.Namespace, east.Name)).Should(HaveField("UID", Not(BeEmpty())))

	e.forge(east, "same-labels", i, func(*inventory.Profile) {})
	e.forge(east, "same-uid", i, func(p *inventory.Profile) {
		delete(p.Labels, inventory.LabelMemberID)
		p.Status.Properties = nil
	})
	for _, name := range []string{"same-labels", "same-uid"} {
		g.Eventually(e.statusOf(realfleet.SecondNamespace, name)).Should(isDuplicateOf(east), name)
	}
	g.Expect(e.statusOf(east.Namespace, east.Name)().Alternates).To(BeEmpty())

	east.Network.SetDown(true)
	t.Cleanup(func() { east.Network.SetDown(false) })
	g.Eventually(e.statusOf(east.Namespace, east.Name)).Should(HaveField("State", fleet.Degraded))
	g.Consistently(e.provider.Status, "1s").Should(ConsistOf(
		And(HaveField("Name", memberName(east)), HaveField("State", fleet.Degraded)), isDuplicateOf(east), isDuplicateOf(east)))
	east.Network.SetDown(false)
	g.Eventually(e.statusOf(east.Namespace, east.Name)).Should(HaveField("State", fleet.Ready))
	e.create(east, "after")
	g.Eventually(e.reconciled(east, "after")).Should(BeTrue())
	g.Expect(e.engagements(east)).To(Equal(1))
	requests, _ := i.received()
	g.Expect(requests).To(HaveEach("/api/v1/namespaces/kube-system"), "only its identity is checked")

	e.remove(east)
	g.Eventually(e.provider.Status).Should(ContainElement(And(HaveField("Name", Not(Equal(memberName(east)))), HaveField("State", fleet.Ready))))
	g.Expect(e.get(east)()).To(MatchError(multicluster.ErrClusterNotFound))
	_, tokens := i.received()
	g.Expect(tokens).To(ConsistOf("Bearer its-own"))
}
