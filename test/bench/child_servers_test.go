// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// remoteCluster is a member in another process.
type remoteCluster struct {
	ClusterName, Host, Token string
	CA                       []byte
}

func remoteOf(c *mctest.Cluster) remoteCluster {
	config := c.Config()
	return remoteCluster{ClusterName: c.Name(), Host: config.Host, Token: config.BearerToken, CA: config.CAData}
}

func (r remoteCluster) Name() string { return r.ClusterName }

func (r remoteCluster) Config() *rest.Config {
	return &rest.Config{Host: r.Host, BearerToken: r.Token, TLSClientConfig: rest.TLSClientConfig{CAData: r.CA}, QPS: -1}
}

// remoteServers are the API servers of a child: clusters of its own for each
// contender.
type remoteServers struct {
	home    *mctest.Cluster
	fleets  map[string]*mctest.Fleet // by role of the contender
	release func()                   // of the last Burst
}

func newRemoteServers(tb testing.TB, todo Task) *remoteServers {
	s := &remoteServers{home: mctest.New(tb), fleets: map[string]*mctest.Fleet{}}
	for role := range contestants {
		s.fleets[role] = newFleet(tb, todo.Clusters)
	}
	return s
}

// Task returns the task of a contender.
func (s *remoteServers) Task(role string, reply *Task) error {
	reply.Role, reply.Home = role, remoteOf(s.home)
	for _, c := range s.fleets[role].Clusters() {
		reply.Members = append(reply.Members, remoteOf(c))
	}
	return nil
}

// Trickle is a steady stream of events.
type Trickle struct {
	Clusters int           // the first of all, which get events in turn
	Every    time.Duration // time between two events of a contender
	For      time.Duration
}

// Trickle creates objects, whose names have the time of their creation, for both
// contenders alternately. It returns the number for each of them.
func (s *remoteServers) Trickle(t Trickle, created *int) error {
	tick := time.NewTicker(t.Every / time.Duration(len(s.fleets)))
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < t.For; *created++ {
		for _, fleet := range s.fleets {
			<-tick.C
			c := fleet.Cluster(*created % t.Clusters)
			if err := c.Create(configMap(timed + strconv.FormatInt(time.Now().UnixNano(), 10))); err != nil {
				return err
			}
		}
	}
	return nil
}

// timed begins the name of an object that has the time of its creation.
const timed = "timed-"

// age returns the time since the creation of an object with the name.
func age(name string) (time.Duration, bool) {
	text, ok := strings.CutPrefix(name, timed)
	if !ok {
		return 0, false
	}
	created, err := strconv.ParseInt(text, 10, 64)
	return time.Since(time.Unix(0, created)), err == nil
}

// Burst is many events at once.
type Burst struct {
	Role string // of the contender
	Name string
	Each int // in each cluster
}

// Burst creates objects, which are delivered by Release. It returns their number.
func (s *remoteServers) Burst(b Burst, created *int) error {
	var lifts []func()
	for _, c := range s.fleets[b.Role].Clusters() {
		lifts = append(lifts, c.Fault(mctest.Hang.For("watch")))
		for i := range b.Each {
			if err := c.Create(configMap(fmt.Sprintf("%s-%d", b.Name, i))); err != nil {
				return err
			}
			*created++
		}
	}
	s.release = func() {
		for _, lift := range lifts {
			lift()
		}
	}
	return nil
}

// Release lets all watches deliver at once. It returns the time before.
func (s *remoteServers) Release(_ int, began *time.Time) error {
	*began = time.Now()
	s.release()
	return nil
}
