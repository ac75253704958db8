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

// defaultBackoff sets the default backoff.
func defaultBackoff(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = 0, 0 }

// connectByServer connects fake clusters whose UID is the server.
var connectByServer = connectorFunc(func(_ context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	server := serverOf(p)
	return &fleet.Connection{
		Cluster: fakeCluster{}, Server: server, Fingerprint: server,
		Probe: func(context.Context) (string, error) { return server, nil },
	}, nil
})

func TestAccessFlappingIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		env := start(t, nil, withConnector(connectByServer), defaultBackoff)
		count := func() int { return len(env.aware.of("fleet/eu")) }
		write := func(during, every time.Duration) {
			for i := range int(during / every) {
				env.source.put(profile("eu", []string{"a", "b"}[i%2]))
				time.Sleep(every)
			}
		}
		write(3*time.Second, 10*time.Millisecond)
		g.Expect(count()).To(And(BeNumerically(">", 1), BeNumerically("<=", 8)))
		write(time.Hour, time.Second)
		g.Expect(count()).To(BeNumerically("<=", 30), "the delay doubles up to 5 min")
		g.Expect(env.status("fleet/eu")).To(And(HaveField("State", fleet.Backoff), HaveField("LastError", ContainSubstring("cluster identity changed"))))

		time.Sleep(12 * time.Minute)
		synctest.Wait()
		g.Expect(env.status("fleet/eu")).To(And(HaveField("State", fleet.Ready), HaveField("Server", "b")))
		before := count()
		env.source.put(profile("eu", "a"))
		synctest.Wait()
		g.Expect(count()).To(Equal(before+1), "one change is followed at once")
		g.Expect(env.status("fleet/eu")).To(And(HaveField("State", fleet.Ready), HaveField("Server", "a")))
		env.stop()
	})
}

func TestInventoryFlappingIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		env := start(t, nil, withConnector(connectByServer), defaultBackoff)
		const flips, every = 100, 100 * time.Millisecond
		for range flips {
			env.source.put(profile("eu", "x"))
			time.Sleep(every / 2)
			env.source.remove("eu")
			time.Sleep(every / 2)
		}
		g.Expect(len(env.aware.of("fleet/eu"))).To(BeNumerically("~", 8, 1))

		env.source.put(profile("eu", "x"), profile("us", "y"))
		synctest.Wait()
		g.Expect(env.status("fleet/eu")).To(And(HaveField("State", fleet.Backoff), HaveField("Reason", fleet.Added),
			HaveField("LastError", ContainSubstring("removed and added again too often"))))
		g.Expect(env.state("fleet/us")()).To(Equal(fleet.Ready), "other clusters are not throttled")
		time.Sleep(10 * time.Second) // the delay was 8 s to 9.6 s at the last time
		synctest.Wait()
		g.Expect(env.state("fleet/eu")()).To(Equal(fleet.Ready))
		env.stop()
	})
}

func TestIdentityFlappingIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var probes atomic.Int64
		env := start(t, nil, defaultBackoff, withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
			return &fleet.Connection{Cluster: fakeCluster{}, Probe: func(context.Context) (string, error) {
				return fmt.Sprint(probes.Add(1)), nil
			}}, nil
		})), func(o *fleet.Options) { o.Connection.Probe.Interval = 10 * time.Millisecond })
		env.source.put(profile("eu", "x"))
		time.Sleep(3 * time.Second)
		g.Expect(env.aware.of("fleet/eu")).To(HaveLen(7), "five changes are followed at once, the sixth after 1 s")
		time.Sleep(time.Hour)
		g.Expect(len(env.aware.of("fleet/eu"))).To(BeNumerically("<=", 30))
		env.stop()
	})
}

func TestChangesWhileConnectingAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var tries atomic.Int64
		env := start(t, nil, defaultBackoff, withConnector(connectorFunc(func(ctx context.Context, _ *inventory.Profile) (*fleet.Connection, error) {
			tries.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		})))
		for i := range 1000 {
			env.source.put(profile("eu", fmt.Sprint(i)))
			time.Sleep(10 * time.Millisecond)
		}
		g.Expect(tries.Load()).To(And(BeNumerically(">", 6), BeNumerically("<=", 11)))
		env.stop()
	})
}

func TestWhichChangesEndBackoff(t *testing.T) {
	type profiles = *inventory.Profile
	condition := func(status metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: "ControlPlaneHealthy", Status: status, Reason: "R", Message: message, LastTransitionTime: metav1.Now()}}
	}
	for _, change := range []struct {
		name   string
		change func(p profiles)
		ends   bool
	}{
		{"time of a property", func(p profiles) { p.Status.Properties[0].LastObservedTime = metav1.Now() }, false},
		{"order of properties", func(p profiles) {
			all := p.Status.Properties
			all[0], all[1] = all[1], all[0]
		}, false},
		{"message of a condition", func(p profiles) { p.Status.Conditions = condition("False", "still") }, false},
		{"metadata of the API server", func(p profiles) {
			p.ResourceVersion, p.Generation = "8", 3
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		}, false},
		{"status of a condition", func(p profiles) { p.Status.Conditions = condition("True", "") }, true},
		{"property", func(p profiles) { p.Status.Properties[0].Value = "other" }, true},
		{"version", func(p profiles) { p.Status.Version.Kubernetes = "v1.37.0" }, true},
		{"label", func(p profiles) { p.Labels = map[string]string{"a": "b"} }, true},
		{"annotation", func(p profiles) { p.Annotations = map[string]string{"a": "b"} }, true},
		{"spec", func(p profiles) { p.Spec.DisplayName = "other" }, true},
		{"access provider", func(p profiles) { p.Status.AccessProviders[0].Cluster.Server = "other" }, true},
		{"UID", func(p profiles) { p.UID = "other" }, true},
	} {
		t.Run(change.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				tries := 0
				env := start(t, nil, func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour },
					withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
						tries++
						return nil, errors.New("not now")
					})))
				p := profile("eu", "x")
				p.Status.Properties = []v1alpha1.Property{{Name: "a", Value: "b"}, {Name: "c", Value: "d"}}
				p.Status.Conditions = condition("False", "")
				env.source.put(p)
				synctest.Wait()
				p = p.DeepCopy()
				change.change(p)
				env.source.put(p)
				synctest.Wait()
				g.Expect(tries == 2).To(Equal(change.ends))
				env.stop()
			})
		})
	}
}

func TestHeartbeatAfterProfileChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var tries atomic.Int64
		env := start(t, nil, func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour },
			withConnector(fakeConnector{
				connect: func(context.Context, *inventory.Profile) error { tries.Add(1); return nil },
				probe:   failLater(errors.New("down")),
			}))
		p := profile("eu", "x")
		env.source.put(p)
		synctest.Wait()
		p = withLabel(p, "changed while engaged")
		env.source.put(p)
		time.Sleep(15 * time.Minute)
		g.Expect(env.state("fleet/eu")()).To(Equal(fleet.Backoff))
		for i := range 10 {
			p = p.DeepCopy()
			p.ResourceVersion = fmt.Sprint(i)
			env.source.put(p)
			synctest.Wait()
		}
		g.Expect(tries.Load()).To(BeEquivalentTo(1))
		env.source.put(withLabel(p, "again"))
		synctest.Wait()
		g.Expect(tries.Load()).To(BeEquivalentTo(2))
		env.stop()
	})
}

func TestChangingPropertyKeepsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		tries := 0
		env := start(t, nil, defaultBackoff, withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
			tries++
			return nil, errors.New("not now")
		})))
		p := profile("eu", "x")
		for i := range 6_000 {
			p = p.DeepCopy()
			p.Status.Properties = []v1alpha1.Property{{Name: "load", Value: fmt.Sprint(i)}}
			env.source.put(p)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		g.Expect(tries).To(BeNumerically("<=", 60), "in ten minutes")
		env.stop()
	})
}
