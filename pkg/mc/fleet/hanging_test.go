// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// imaginary is a Connector to clusters that take their time and do nothing. The
// server of a profile says which it is.
type imaginary struct {
	answer time.Duration // to a question
	list   time.Duration
	silent *atomic.Bool // if set and true, none answers
}

const hangs = "hangs"

func (i imaginary) Connect(_ context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	return &fleet.Connection{
		Cluster: imaginaryCluster{},
		Probe: func(ctx context.Context) (string, error) {
			if p.Status.AccessProviders[0].Cluster.Server == hangs || i.silent != nil && i.silent.Load() {
				<-ctx.Done()
				return "", ctx.Err()
			}
			time.Sleep(i.answer)
			return p.Name, nil
		},
	}, nil
}

type imaginaryCluster struct{ cluster.Cluster }

func (imaginaryCluster) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (imaginaryCluster) GetCache() cache.Cache { return imaginaryCache{} }

func (imaginaryCluster) GetFieldIndexer() client.FieldIndexer { return imaginaryCache{} }

type imaginaryCache struct{ cache.Cache }

func (imaginaryCache) WaitForCacheSync(context.Context) bool { return true }

// imaginaryReader lists each cluster for a while, and counts them.
type imaginaryReader struct {
	*engagements
	list  time.Duration
	left  atomic.Int32
	ready chan struct{}
}

func (r *imaginaryReader) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	readInBackground(ctx, func() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.list):
		}
		if r.left.Add(-1) == 0 {
			close(r.ready)
		}
	})
	return r.engagements.Engage(ctx, name, cl)
}

// untilListed is how long a fleet takes until all clusters that are well are
// listed, where others hang that come at regular distances between them.
func untilListed(t *testing.T, i imaginary, well, hanging int) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		reader := &imaginaryReader{list: i.list, ready: make(chan struct{})}
		reader.left.Store(int32(well))
		w := startWith(t, nil, func(e *engagements) multicluster.Aware {
			reader.engagements = e
			return reader
		}, withConnector(i), func(o *fleet.Options) {
			o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = 0, 0, 0 // their defaults
		})
		all := make([]*inventory.Profile, 0, well+hanging)
		for n := range well + hanging {
			server := "well"
			if (n+1)*hanging/(well+hanging) > n*hanging/(well+hanging) {
				server = hangs
			}
			all = append(all, profile(fmt.Sprintf("c%d", n), server))
		}
		began := time.Now()
		w.list.put(all...)
		<-reader.ready
		took = time.Since(began)
		w.stop()
	})
	return took
}

func TestAHundredClustersThatHangDelayTwoThousandByLessThanAFifth(t *testing.T) {
	for _, i := range []imaginary{
		{answer: 5 * time.Millisecond, list: 5 * time.Millisecond},
		{answer: 5 * time.Millisecond, list: 200 * time.Millisecond},
		{answer: 100 * time.Millisecond, list: 100 * time.Millisecond},
		{answer: 400 * time.Millisecond, list: 10 * time.Millisecond},
		{answer: 300 * time.Millisecond, list: 2 * time.Second},
		{answer: 900 * time.Millisecond, list: 900 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("answers take %v, lists %v", i.answer, i.list), func(t *testing.T) {
			alone, beside := untilListed(t, i, 1900, 0), untilListed(t, i, 1900, 100)
			ratio := float64(beside) / float64(alone)
			t.Logf("alone %v, beside 100 that hang %v: %.2f", alone, beside, ratio)
			if ratio >= 1.2 {
				t.Errorf("100 clusters that hang delay 1900 others by %.0f %%, less than 20 %% is wanted", (ratio-1)*100)
			}
		})
	}
}

// slowToResolve is a Connector that takes a while, and counts.
type slowToResolve struct {
	imaginary
	changed chan func()

	mu              sync.Mutex // guards what follows
	now, most, done int
}

func (s *slowToResolve) NotifyChange(_ context.Context, changed func()) { s.changed <- changed }

func (s *slowToResolve) Connect(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	s.add(1)
	defer s.add(-1)
	time.Sleep(100 * time.Millisecond)
	c, err := s.imaginary.Connect(ctx, p)
	c.Fingerprint = "the same"
	return c, err
}

func (s *slowToResolve) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += n
	s.most = max(s.most, s.now)
	if n < 0 {
		s.done++
	}
}

func TestAChangeOfAllCredentialsIsFollowedAFewClustersAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all, limit = 50, 4
		g := NewWithT(t)
		connector := &slowToResolve{changed: make(chan func(), 1)}
		w := start(t, nil, withConnector(connector), func(o *fleet.Options) { o.Connection.StartupLimit, o.Connection.ConnectTimeout = limit, time.Second })
		for n := range all {
			w.list.put(profile(fmt.Sprintf("c%d", n), "well"))
		}
		time.Sleep(time.Minute)
		g.Expect(w.ClusterNames()).To(HaveLen(all))
		connector.mu.Lock()
		connector.most, connector.done = 0, 0
		connector.mu.Unlock()

		began := time.Now()
		(<-connector.changed)()
		for done := 0; done < all; synctest.Wait() {
			time.Sleep(10 * time.Millisecond)
			connector.mu.Lock()
			done = connector.done
			connector.mu.Unlock()
		}
		g.Expect(connector.most).To(Equal(limit))
		g.Expect(time.Since(began)).To(BeNumerically("~", 1300*time.Millisecond, 10*time.Millisecond), "the wait does not count towards the time limit of a second")
		for _, status := range w.Status() {
			g.Expect(status).To(And(HaveField("State", fleet.Ready), HaveField("LastError", BeEmpty())))
			g.Expect(w.engagements.of(status.Name)).To(HaveLen(1))
		}
		w.stop()
	})
}
