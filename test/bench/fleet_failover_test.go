// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/test/internal/inmemory"
)

// Tokens of the two profiles of a cluster.
const (
	firstToken  = "first"
	secondToken = "second"
)

// failovers measures how clusters go on with their second profiles.
func failovers(tb testing.TB, s fleetSize) []row {
	tb.Helper()
	rows := failover(tb, s, "%d first profiles removed", func(f *benchFleet, server *mctest.Cluster) {
		f.inventory.Delete(withToken(server, firstToken))
	})
	return append(rows, failover(tb, s, "access of %d first profiles refused", func(*benchFleet, *mctest.Cluster) {})...)
}

// failover lets the first profiles of all clusters fail, whose access then ends. The
// name of the first row has the number of clusters.
func failover(tb testing.TB, s fleetSize, name string, fail func(*benchFleet, *mctest.Cluster)) []row {
	tb.Helper()
	members := newFleet(tb, s.failover)
	defer closeFleet(members)
	servers := members.Clusters()
	var lists atomic.Int64
	f := startFleet(tb, nil, 0, 0, func(o *fleet.ConnectionOptions) {
		o.Probe.Interval = time.Second
		o.RESTOptions = []func(*rest.Config) error{func(c *rest.Config) error { c.Wrap(countLists(&lists)); return nil }}
	})
	defer f.stop()
	for _, server := range servers {
		for _, token := range []string{firstToken, secondToken} {
			server.AddToken(token, token, "system:masters")
			f.inventory.Connect(server.Name()+token, server.ConfigFor(token))
			f.inventory.Put(withToken(server, token))
		}
	}
	await(tb, servers, "watched", func(server *mctest.Cluster) bool { return server.OpenWatches("configmaps") == 1 })
	duplicates := func() (n int) {
		for _, status := range f.Status() {
			if status.State == fleet.Duplicate {
				n++
			}
		}
		return n
	}
	await(tb, servers[:1], "a duplicate, like all others", func(*mctest.Cluster) bool { return duplicates() == len(servers) })

	before, engagements, began := lists.Load(), f.engagements.Load(), time.Now()
	for _, server := range servers {
		fail(f, server)
		server.RevokeToken(firstToken)
		server.CloseConnections()
	}
	key := client.ObjectKey{Namespace: "default", Name: first}
	await(tb, servers, "reached with its second profile", func(server *mctest.Cluster) bool {
		cl, err := f.Get(tb.Context(), multicluster.ClusterName(server.Name()))
		return err == nil && cl.GetConfig().BearerToken == secondToken && cl.GetAPIReader().Get(tb.Context(), key, &corev1.ConfigMap{}) == nil
	})
	requests := time.Since(began)
	await(tb, servers, "watched", func(server *mctest.Cluster) bool { return server.OpenWatches("configmaps") == 1 })
	resumed := time.Since(began)
	return []row{
		single(fmt.Sprintf(name, s.failover)+": requests succeed", seconds, nil, requests.Seconds()),
		single("  all watches resumed", seconds, nil, resumed.Seconds()),
		single("  LISTs", integer, none, float64(lists.Load()-before)),
		single("  re-engagements", integer, none, float64(f.engagements.Load()-engagements)),
	}
}

// countLists counts the requests for all ConfigMaps. A limit of 1 only asks for the
// resource version, which is done after a lost connection.
func countLists(count *atomic.Int64) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			query := req.URL.Query()
			isList := query.Get("watch") == "" && query.Get("limit") != "1" || query.Get("sendInitialEvents") == "true"
			if isList && strings.HasSuffix(req.URL.Path, "/configmaps") {
				count.Add(1)
			}
			return next.RoundTrip(req)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// withToken returns the profile of the server for a token. The name of the first one
// is that of the cluster.
func withToken(server *mctest.Cluster, token string) *inventory.Profile {
	name := server.Name()
	if token == secondToken {
		name += "-second"
	}
	p := inmemory.Profile(name, server.Name()+token)
	p.Labels = map[string]string{inventory.LabelMemberID: server.Name()}
	return p
}
