// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
)

// defaultBackoff is the one that a fleet has by default.
func defaultBackoff(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = 0, 0 }

// addressed connects imaginary clusters whose UID is their address.
var addressed = connectorFunc(func(_ context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	server := p.Status.AccessProviders[0].Cluster.Server
	return &fleet.Connection{
		Cluster: imaginaryCluster{}, Server: server, Fingerprint: server,
		Probe: func(context.Context) (string, error) { return server, nil },
	}, nil
})

func TestTwoWritersOfOneProfileHaveItEngagedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w := start(t, nil, withConnector(addressed), defaultBackoff)
		count := func() int { return len(w.engagements.of("fleet/eu")) }
		write := func(during, every time.Duration) {
			for i := range int(during / every) {
				w.list.put(profile("eu", []string{"a", "b"}[i%2]))
				time.Sleep(every)
			}
		}
		write(3*time.Second, 10*time.Millisecond)
		g.Expect(count()).To(And(BeNumerically(">", 1), BeNumerically("<=", 8)))
		write(time.Hour, time.Second)
		g.Expect(count()).To(BeNumerically("<=", 30), "the wait doubles up to 5 min")
		g.Expect(w.status("fleet/eu")).To(And(HaveField("State", fleet.Backoff), HaveField("LastError", ContainSubstring("cluster identity changed"))))

		time.Sleep(12 * time.Minute) // peace
		synctest.Wait()
		g.Expect(w.status("fleet/eu")).To(And(HaveField("State", fleet.Ready), HaveField("Server", "b")))
		before := count()
		w.list.put(profile("eu", "a"))
		synctest.Wait()
		g.Expect(count()).To(Equal(before+1), "one change is followed at once")
		g.Expect(w.status("fleet/eu")).To(And(HaveField("State", fleet.Ready), HaveField("Server", "a")))
		w.stop()
	})
}

func TestTwoClustersBehindOneAddressAreEngagedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var probes atomic.Int64
		w := start(t, nil, defaultBackoff, withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
			return &fleet.Connection{Cluster: imaginaryCluster{}, Probe: func(context.Context) (string, error) {
				return fmt.Sprint(probes.Add(1)), nil
			}}, nil
		})), func(o *fleet.Options) { o.Connection.Probe.Interval = 10 * time.Millisecond })
		w.list.put(profile("eu", "x"))
		time.Sleep(3 * time.Second)
		g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(7), "five changes are followed at once, another after a second")
		time.Sleep(time.Hour)
		g.Expect(len(w.engagements.of("fleet/eu"))).To(BeNumerically("<=", 30))
		w.stop()
	})
}

func TestAnAccessThatChangesWhileItIsTriedIsTriedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var tries atomic.Int64
		w := start(t, nil, defaultBackoff, withConnector(connectorFunc(func(ctx context.Context, _ *inventory.Profile) (*fleet.Connection, error) {
			tries.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		})))
		for i := range 1000 {
			w.list.put(profile("eu", fmt.Sprint(i)))
			time.Sleep(10 * time.Millisecond)
		}
		g.Expect(tries.Load()).To(And(BeNumerically(">", 6), BeNumerically("<=", 11)))
		w.stop()
	})
}

func TestAChangeEndsTheWaitAndAHeartbeatDoesNot(t *testing.T) {
	type profiles = *inventory.Profile
	condition := func(status metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: "ControlPlaneHealthy", Status: status, Reason: "R", Message: message, LastTransitionTime: metav1.Now()}}
	}
	for _, change := range []struct {
		name   string
		change func(p profiles)
		ends   bool
	}{
		{"the time of a property", func(p profiles) { p.Status.Properties[0].LastObservedTime = metav1.Now() }, false},
		{"the order of properties", func(p profiles) {
			all := p.Status.Properties
			all[0], all[1] = all[1], all[0]
		}, false},
		{"a condition's message", func(p profiles) { p.Status.Conditions = condition("False", "still") }, false},
		{"what the API server writes", func(p profiles) {
			p.ResourceVersion, p.Generation = "8", 3
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		}, false},
		{"a condition's status", func(p profiles) { p.Status.Conditions = condition("True", "") }, true},
		{"a property", func(p profiles) { p.Status.Properties[0].Value = "other" }, true},
		{"the version", func(p profiles) { p.Status.Version.Kubernetes = "v1.37.0" }, true},
		{"a label", func(p profiles) { p.Labels = map[string]string{"a": "b"} }, true},
		{"an annotation", func(p profiles) { p.Annotations = map[string]string{"a": "b"} }, true},
		{"the specification", func(p profiles) { p.Spec.DisplayName = "other" }, true},
		{"an access provider", func(p profiles) { p.Status.AccessProviders[0].Cluster.Server = "other" }, true},
		{"the object", func(p profiles) { p.UID = "another" }, true},
	} {
		t.Run(change.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				tries := 0
				w := start(t, nil, func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour },
					withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
						tries++
						return nil, errors.New("not now")
					})))
				p := profile("eu", "x")
				p.Status.Properties = []v1alpha1.Property{{Name: "a", Value: "b"}, {Name: "c", Value: "d"}}
				p.Status.Conditions = condition("False", "")
				w.list.put(p)
				synctest.Wait()
				p = p.DeepCopy()
				change.change(p)
				w.list.put(p)
				synctest.Wait()
				g.Expect(tries == 2).To(Equal(change.ends))
				w.stop()
			})
		})
	}
}

func TestAHeartbeatIsOneAlsoAfterTheProfileHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var tries atomic.Int64
		w := start(t, nil, func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour },
			withConnector(scene{
				connect: func(context.Context, *inventory.Profile) error { tries.Add(1); return nil },
				probe:   laterOn(errors.New("down")),
			}))
		p := profile("eu", "x")
		w.list.put(p)
		synctest.Wait()
		p = labelled(p, "changed while it was engaged")
		w.list.put(p)
		time.Sleep(15 * time.Minute)
		g.Expect(w.state("fleet/eu")()).To(Equal(fleet.Backoff))
		for i := range 10 {
			p = p.DeepCopy()
			p.ResourceVersion = fmt.Sprint(i)
			w.list.put(p)
			synctest.Wait()
		}
		g.Expect(tries.Load()).To(BeEquivalentTo(1))
		w.list.put(labelled(p, "again"))
		synctest.Wait()
		g.Expect(tries.Load()).To(BeEquivalentTo(2))
		w.stop()
	})
}

func TestAPropertyThatChangesAllTheTimeDoesNotDefeatTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		tries := 0
		w := start(t, nil, defaultBackoff, withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
			tries++
			return nil, errors.New("not now")
		})))
		p := profile("eu", "x")
		for i := range 6_000 {
			p = p.DeepCopy()
			p.Status.Properties = []v1alpha1.Property{{Name: "load", Value: fmt.Sprint(i)}}
			w.list.put(p)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		g.Expect(tries).To(BeNumerically("<=", 60), "in ten minutes")
		w.stop()
	})
}
