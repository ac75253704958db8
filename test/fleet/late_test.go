// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
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
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// inFlight counts the requests for ConfigMaps that have not been answered.
type inFlight struct {
	mu        sync.Mutex // guards what follows
	now, most int
}

func (i *inFlight) add(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now += n
	i.most = max(i.most, i.now)
}

// peak is how many there were at a time, at most.
func (i *inFlight) peak() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.most
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

// leaseOfAnother is what a replica waits for until it is deleted.
func leaseOfAnother() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "replicas"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To[int32](3600),
			AcquireTime: ptr.To(metav1.NowMicro()), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
}

func TestClustersAreListedAFewAtATimeAlsoWhereControllersStartLater(t *testing.T) {
	const all, limit = 200, 10
	elect := func(g *WithT, home *mctest.Cluster, lease *coordinationv1.Lease) {
		g.Expect(home.Delete(lease)).To(Succeed())
	}
	for _, tc := range []struct {
		name    string
		elected bool // before the clusters are engaged
		build   bool // the controller, before that
		then    func(g *WithT, home *mctest.Cluster, lease *coordinationv1.Lease)
	}{
		{name: "on a replica that becomes the leader", build: true, then: elect},
		{name: "when they are added", elected: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			home, f, list := mctest.New(t), mctest.NewFleet(t, all), newRoll()
			lease := leaseOfAnother()
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
			mgr, err := mcmanager.New(home.Config(), members, mcmanager.Options{
				Metrics:        metricsserver.Options{BindAddress: "0"},
				LeaderElection: !tc.elected, LeaderElectionID: lease.Name, LeaderElectionNamespace: lease.Namespace,
				RetryPeriod: ptr.To(100 * time.Millisecond),
			}, mcmanager.WithProviderNeedLeaderElection(false))
			g.Expect(err).NotTo(HaveOccurred())
			build := func() {
				g.Expect(mcbuilder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
					WithOptions(mccontroller.Options{SkipNameValidation: ptr.To(true)}).
					Complete(mcreconcile.Func(func(context.Context, mcreconcile.Request) (ctrl.Result, error) {
						return ctrl.Result{}, nil
					}))).To(Succeed())
			}
			if tc.build {
				build()
			}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- mgr.Start(ctx) }()
			defer func() {
				cancel()
				g.Expect(<-ended).To(Succeed())
			}()

			for _, c := range f.Clusters() {
				c.Fault(mctest.Slow(20 * time.Millisecond).On("configmaps"))
			}
			list.join(f.Clusters()...)
			g.Eventually(func() int { return len(members.ClusterNames()) }).WithTimeout(patience).Should(Equal(all))
			g.Expect(lists.peak()).To(BeZero(), "nobody has asked yet")

			if tc.then != nil {
				tc.then(g, home, lease)
			}
			if !tc.build {
				build()
			}
			for _, c := range f.Clusters() {
				g.Eventually(func() int { return c.OpenWatches("configmaps") }).WithTimeout(patience).Should(Equal(1), c.Name())
			}
			g.Expect(lists.peak()).To(And(BeNumerically(">", 1), BeNumerically("<=", limit)))
		})
	}
}
