// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestFailureThreshold(t *testing.T) {
	for _, threshold := range []int{0, 1, 2, 5} {
		t.Run(fmt.Sprint(threshold), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var down atomic.Bool
				var failures, before atomic.Int32
				var env *testEnv
				env = start(t, nil, func(o *fleet.Options) { o.Connection.Probe.FailureThreshold = threshold },
					withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
						return &fleet.Connection{Cluster: fakeCluster{}, Probe: func(context.Context) (string, error) {
							if !down.Load() {
								return "u", nil
							}
							failures.Add(1)
							if env.state("fleet/eu")() == fleet.Ready && len(env.aware.healthOf("fleet/eu")) == 0 {
								before.Add(1)
							}
							return "", errors.New("down")
						}}, nil
					})))
				env.source.put(profile("eu", "x"))
				synctest.Wait()
				g.Expect(env.state("fleet/eu")()).To(Equal(fleet.Ready))
				want := threshold
				if want == 0 {
					want = 3
				}
				until := func(reached func() bool) {
					for !reached() {
						time.Sleep(time.Second)
						synctest.Wait()
					}
				}

				down.Store(true)
				until(func() bool { return int(failures.Load()) == want-1 })
				down.Store(false)
				time.Sleep(20 * time.Second)
				g.Expect(env.aware.healthOf("fleet/eu")).To(BeEmpty(), "one failure less than the threshold")
				failures.Store(0)
				before.Store(0)

				down.Store(true)
				until(func() bool { return env.state("fleet/eu")() != fleet.Ready })
				g.Expect(env.aware.healthOf("fleet/eu")).To(Equal([]bool{false}))
				g.Expect(env.state("fleet/eu")()).To(Equal(fleet.Degraded))
				g.Expect(failures.Load()).To(BeEquivalentTo(want))
				g.Expect(before.Load()).To(BeEquivalentTo(want))
				env.stop()
			})
		})
	}
}

func TestUnauthorizedProbeReconnects(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want fleet.State // while credentials are resolved again
	}{
		{"401", apierrors.NewUnauthorized("no"), fleet.Ready},
		{"other error", errors.New("down"), fleet.Degraded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var engaged atomic.Bool
				env := start(t, nil, func(o *fleet.Options) { o.Connection.Probe.FailureThreshold = 1 }, withConnector(fakeConnector{
					connect: func(context.Context, *inventory.Profile) error {
						if engaged.Load() {
							time.Sleep(5 * time.Second)
						}
						return nil
					},
					probe: failLater(tc.err),
				}))
				env.source.put(profile("eu", "x"))
				synctest.Wait()
				engaged.Store(true)
				time.Sleep(12 * time.Second) // one probe was sent
				synctest.Wait()
				g.Expect(env.state("fleet/eu")()).To(Equal(tc.want))
				time.Sleep(5 * time.Second)
				synctest.Wait()
				g.Expect(env.state("fleet/eu")()).To(Equal(fleet.Degraded))
				env.stop()
			})
		})
	}
}

// logRecorder records the lines of a logger.
type logRecorder struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (n *logRecorder) write(prefix, args string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, prefix+args)
}

func (n *logRecorder) with(part string) (lines []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, line := range n.lines {
		if strings.Contains(line, part) {
			lines = append(lines, line)
		}
	}
	return lines
}

// stuckCluster is a fake cluster that ignores its context.
type stuckCluster struct {
	fakeCluster
	unblock chan struct{}
}

func (u stuckCluster) Start(context.Context) error {
	<-u.unblock
	return nil
}

func TestDisengageTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		unblock := make(chan struct{})
		lines := &logRecorder{}
		ctx := log.IntoContext(t.Context(), funcr.New(lines.write, funcr.Options{}))
		env := startIn(ctx, t, nil, func(e *awareRecorder) multicluster.Aware { return e },
			func(o *fleet.Options) { o.Connection.ConnectTimeout = 30 * time.Second },
			withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
				return &fleet.Connection{Cluster: stuckCluster{unblock: unblock}}, nil
			})))
		env.source.put(profile("eu", "x"))
		synctest.Wait()
		env.source.remove("eu")
		time.Sleep(30*time.Second - time.Nanosecond)
		synctest.Wait()
		g.Expect(env.state("fleet/eu")()).To(Equal(fleet.Leaving))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		g.Expect(env.state("fleet/eu")()).To(BeEmpty())
		g.Expect(lines.with("Timed out stopping cluster")).To(ConsistOf(And(
			ContainSubstring(`"cluster"="fleet/eu"`), ContainSubstring(`"duration"="30s"`))))
		g.Expect(lines.with("Cluster disengaged")).To(BeEmpty())
		close(unblock)
		env.stop()
	})
}

func TestRetryJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var mu sync.Mutex
		tries := map[string][]time.Time{}
		env := start(t, nil, defaultBackoff, withConnector(connectorFunc(func(_ context.Context, p *inventory.Profile) (*fleet.Connection, error) {
			mu.Lock()
			defer mu.Unlock()
			tries[p.Name] = append(tries[p.Name], time.Now())
			return nil, errors.New("down")
		})))
		for i := range 100 {
			env.source.put(profile(fmt.Sprint(i), "x"))
		}
		time.Sleep(10 * time.Second)
		env.stop()
		g.Expect(tries).To(HaveLen(100))
		for n, delay := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			different := map[time.Duration]bool{}
			for name, at := range tries {
				waited := at[n+1].Sub(at[n])
				g.Expect(waited).To(And(BeNumerically(">=", delay), BeNumerically("<=", delay*12/10)), name)
				different[waited] = true
			}
			g.Expect(len(different)).To(BeNumerically(">", 50))
		}
	})
}
