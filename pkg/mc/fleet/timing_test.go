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

func TestAClusterIsDegradedByAsManyFailuresAsTheThresholdSays(t *testing.T) {
	for _, threshold := range []int{0, 1, 2, 5} {
		t.Run(fmt.Sprint(threshold), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var down atomic.Bool
				var failures, before atomic.Int32
				var w *world
				w = start(t, nil, func(o *fleet.Options) { o.Connection.Probe.FailureThreshold = threshold },
					withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
						return &fleet.Connection{Cluster: imaginaryCluster{}, Probe: func(context.Context) (string, error) {
							if !down.Load() {
								return "u", nil
							}
							failures.Add(1)
							if w.state("fleet/eu")() == fleet.Ready && len(w.engagements.healthOf("fleet/eu")) == 0 {
								before.Add(1)
							}
							return "", errors.New("down")
						}}, nil
					})))
				w.list.put(profile("eu", "x"))
				synctest.Wait()
				g.Expect(w.state("fleet/eu")()).To(Equal(fleet.Ready))
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
				g.Expect(w.engagements.healthOf("fleet/eu")).To(BeEmpty(), "one failure less is nothing")
				failures.Store(0)
				before.Store(0)

				down.Store(true)
				until(func() bool { return w.state("fleet/eu")() != fleet.Ready })
				g.Expect(w.engagements.healthOf("fleet/eu")).To(Equal([]bool{false}))
				g.Expect(w.state("fleet/eu")()).To(Equal(fleet.Degraded))
				g.Expect(failures.Load()).To(BeEquivalentTo(want))
				g.Expect(before.Load()).To(BeEquivalentTo(want))
				w.stop()
			})
		})
	}
}

func TestARejectedCredentialIsAFailureOnlyIfNoOtherIsFound(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want fleet.State // while the access is looked for
	}{
		{"a rejected credential", apierrors.NewUnauthorized("no"), fleet.Ready},
		{"any other failure", errors.New("down"), fleet.Degraded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var engaged atomic.Bool
				w := start(t, nil, func(o *fleet.Options) { o.Connection.Probe.FailureThreshold = 1 }, withConnector(scene{
					connect: func(context.Context, *inventory.Profile) error {
						if engaged.Load() {
							time.Sleep(5 * time.Second)
						}
						return nil
					},
					probe: laterOn(tc.err),
				}))
				w.list.put(profile("eu", "x"))
				synctest.Wait()
				engaged.Store(true)
				time.Sleep(12 * time.Second) // there has been a probe
				synctest.Wait()
				g.Expect(w.state("fleet/eu")()).To(Equal(tc.want))
				time.Sleep(5 * time.Second)
				synctest.Wait()
				g.Expect(w.state("fleet/eu")()).To(Equal(fleet.Degraded))
				w.stop()
			})
		})
	}
}

// notebook is a logger's output.
type notebook struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (n *notebook) write(prefix, args string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, prefix+args)
}

func (n *notebook) with(part string) (lines []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, line := range n.lines {
		if strings.Contains(line, part) {
			lines = append(lines, line)
		}
	}
	return lines
}

// undying is a cluster that does not keep to its context.
type undying struct {
	imaginaryCluster
	letGo chan struct{}
}

func (u undying) Start(context.Context) error {
	<-u.letGo
	return nil
}

func TestAClusterThatDoesNotEndIsWaitedForNoLongerThanALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		letGo := make(chan struct{})
		lines := &notebook{}
		ctx := log.IntoContext(t.Context(), funcr.New(lines.write, funcr.Options{}))
		w := startIn(ctx, t, nil, func(e *engagements) multicluster.Aware { return e },
			func(o *fleet.Options) { o.Connection.ConnectTimeout = 30 * time.Second },
			withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
				return &fleet.Connection{Cluster: undying{letGo: letGo}}, nil
			})))
		w.list.put(profile("eu", "x"))
		synctest.Wait()
		w.list.remove("eu")
		time.Sleep(30*time.Second - time.Nanosecond)
		synctest.Wait()
		g.Expect(w.state("fleet/eu")()).To(Equal(fleet.Leaving))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		g.Expect(w.state("fleet/eu")()).To(BeEmpty())
		g.Expect(lines.with("Timed out stopping cluster")).To(ConsistOf(And(
			ContainSubstring(`"cluster"="fleet/eu"`), ContainSubstring(`"duration"="30s"`))))
		g.Expect(lines.with("Cluster disengaged")).To(BeEmpty())
		close(letGo)
		w.stop()
	})
}

func TestRetriesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var mu sync.Mutex
		tries := map[string][]time.Time{}
		w := start(t, nil, defaultBackoff, withConnector(connectorFunc(func(_ context.Context, p *inventory.Profile) (*fleet.Connection, error) {
			mu.Lock()
			defer mu.Unlock()
			tries[p.Name] = append(tries[p.Name], time.Now())
			return nil, errors.New("down")
		})))
		for i := range 100 {
			w.list.put(profile(fmt.Sprint(i), "x"))
		}
		time.Sleep(10 * time.Second)
		w.stop()
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
