// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func request(cluster multicluster.ClusterName, namespace, name string) mcreconcile.Request {
	return mcreconcile.Request{
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}},
		ClusterName: cluster,
	}
}

// ticket is a request without a cluster and a String method.
type ticket struct {
	Number int
}

// named is a request with a String method.
type named string

func (n named) String() string { return "the " + string(n) }

func TestRequestString(t *testing.T) {
	for _, tc := range []struct {
		name    string
		request fmt.Stringer
		want    string
	}{
		{"local cluster", request("", "ns", "pod"), "ns/pod"},
		{"other cluster", request("eu", "ns", "pod"), "cluster://eu/ns/pod"},
		{"cluster name with a slash", request("fleet/eu", "ns", "pod"), "cluster://fleet/eu/ns/pod"},
		{"cluster-scoped object", request("eu", "", "node"), "cluster://eu//node"},
		{"custom request of the local cluster", mcreconcile.WithCluster[named]{Request: "job"}, "the job"},
		{"custom request of another cluster", mcreconcile.WithCluster[named]{Request: "job", ClusterName: "eu"}, "cluster://eu/the job"},
		{"custom request without a String method", mcreconcile.WithCluster[ticket]{Request: ticket{7}, ClusterName: "eu"}, "cluster://eu/{7}"},
		{
			"controller-runtime's request in WithCluster",
			mcreconcile.WithCluster[reconcile.Request]{Request: request("", "ns", "pod").Request, ClusterName: "eu"},
			"cluster://eu/ns/pod",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tc.request.String()).To(Equal(tc.want))
			g.Expect(fmt.Sprint(tc.request)).To(Equal(tc.want))
		})
	}
}

func TestRequestInLogs(t *testing.T) {
	for _, tc := range []struct {
		name    string
		request any
		want    string
	}{
		{"object of a cluster", request("eu", "ns", "pod"), `{"cluster":"eu","namespace":"ns","name":"pod"}`},
		{"cluster-scoped object", request("eu", "", "node"), `{"cluster":"eu","name":"node"}`},
		{"object of the local cluster", request("", "ns", "pod"), `{"cluster":"","namespace":"ns","name":"pod"}`},
		{"custom request", mcreconcile.WithCluster[ticket]{Request: ticket{7}, ClusterName: "eu"}, `"cluster://eu/{7}"`},
		{
			"controller-runtime's request in WithCluster",
			mcreconcile.WithCluster[reconcile.Request]{Request: request("", "ns", "pod").Request, ClusterName: "eu"},
			`"cluster://eu/ns/pod"`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for backend, log := range map[string]func(io.Writer) logr.Logger{
				"zap": func(w io.Writer) logr.Logger { return zap.New(zap.WriteTo(w)) },
				"funcr": func(w io.Writer) logr.Logger {
					return funcr.NewJSON(func(line string) { _, _ = io.WriteString(w, line) }, funcr.Options{})
				},
			} {
				var out bytes.Buffer
				log(&out).Info("m", "req", tc.request)
				var line struct{ Req json.RawMessage }
				g := NewWithT(t)
				g.Expect(json.Unmarshal(out.Bytes(), &line)).To(Succeed())
				g.Expect(line.Req).To(MatchJSON(tc.want), backend)
			}
		})
	}
}

// checkCluster tests Cluster and WithCluster of a type of request.
func checkCluster[request mcreconcile.ClusterAware[request]](t *testing.T, req request) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(req.Cluster()).To(BeEmpty())
	eu := req.WithCluster("eu")
	g.Expect(eu.Cluster()).To(BeEquivalentTo("eu"))
	g.Expect(req.Cluster()).To(BeEmpty(), "WithCluster does not change the original")
	g.Expect(eu == req).To(BeFalse(), "requests for two clusters differ")
	g.Expect(eu.WithCluster("us").WithCluster("eu") == eu).To(BeTrue(), "only the name changes")
	g.Expect(eu.WithCluster("") == req).To(BeTrue(), "the empty name is the local cluster")
}

func TestRequestCluster(t *testing.T) {
	t.Run("Request", func(t *testing.T) {
		checkCluster(t, request("", "ns", "pod"))
	})
	t.Run("custom request", func(t *testing.T) {
		checkCluster(t, mcreconcile.WithCluster[ticket]{Request: ticket{7}})
	})
	t.Run("controller-runtime's request in WithCluster", func(t *testing.T) {
		checkCluster(t, mcreconcile.WithCluster[reconcile.Request]{Request: request("", "ns", "pod").Request})
	})
}
