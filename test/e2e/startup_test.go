// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/test/internal/inmemory"
)

// inFlight counts the requests for ConfigMaps that have not been answered.
type inFlight struct {
	mu        sync.Mutex // guards what follows
	now, high int
}

func (i *inFlight) add(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now += n
	i.high = max(i.high, i.now)
}

// peak returns the highest count so far.
func (i *inFlight) peak() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.high
}

func (i *inFlight) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/configmaps") {
			i.add(1)
			defer i.add(-1)
		}
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// foreignLease keeps a replica from becoming the leader until it is deleted.
func foreignLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "replicas"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To[int32](3600),
			AcquireTime: ptr.To(metav1.NowMicro()), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
}

// electedBy returns the options of a replica that retries the lease often.
func electedBy(lease *coordinationv1.Lease, elect bool) mcmanager.Options {
	options := mctest.ManagerOptions()
	options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = elect, lease.Name, lease.Namespace
	options.RetryPeriod = ptr.To(100 * time.Millisecond)
	return options
}

func TestStartupLimitForLateControllers(t *testing.T) {
	const all, limit = 200, 10
	elect := func(g *WithT, home *mctest.Cluster, lease *coordinationv1.Lease) {
		g.Expect(home.Delete(lease)).To(Succeed())
	}
	for _, tc := range []struct {
		name    string
		elected bool // before the clusters are engaged
		build   bool // the controller before that
		then    func(g *WithT, home *mctest.Cluster, lease *coordinationv1.Lease)
	}{
		{name: "a replica becomes the leader", build: true, then: elect},
		{name: "a controller is added", elected: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			home, f, list := mctest.New(t), mctest.NewFleet(t, all), inmemory.New()
			lease := foreignLease()
			g.Expect(home.Create(lease)).To(Succeed())
			lists := &inFlight{}
			members, err := fleet.New(fleet.Options{
				Source: list, Credentials: list,
				Connection: fleet.ConnectionOptions{
					StartupLimit: limit,
					RESTOptions: []func(*rest.Config) error{func(config *rest.Config) error {
						config.Wrap(lists.wrap)
						return nil
					}},
				},
			})
			g.Expect(err).NotTo(HaveOccurred())
			mgr, err := mcmanager.New(home.Config(), members, electedBy(lease, !tc.elected), mcmanager.WithProviderNeedLeaderElection(false))
			g.Expect(err).NotTo(HaveOccurred())
			build := func() {
				g.Expect(mcbuilder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(newRecorder())).To(Succeed())
			}
			if tc.build {
				build()
			}
			defer mctest.StartManager(t, mgr)()

			for _, c := range f.Clusters() {
				c.Fault(mctest.Slow(20 * time.Millisecond).On("configmaps"))
			}
			list.Add(f.Clusters()...)
			g.Eventually(func() int { return len(members.ClusterNames()) }).Should(Equal(all))
			g.Expect(lists.peak()).To(BeZero(), "no controller has started yet")

			if tc.then != nil {
				tc.then(g, home, lease)
			}
			if !tc.build {
				build()
			}
			for _, c := range f.Clusters() {
				g.Eventually(func() int { return c.OpenWatches("configmaps") }).Should(Equal(1), c.Name())
			}
			g.Expect(lists.peak()).To(And(BeNumerically(">", 1), BeNumerically("<=", limit)))
		})
	}
}
