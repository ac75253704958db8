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

// ticket is a request that knows nothing of clusters and has no text of its own.
type ticket struct {
	Number int
}

// named is a request with a text of its own.
type named string

func (n named) String() string { return "the " + string(n) }

func TestRequestsAsText(t *testing.T) {
	for _, tc := range []struct {
		name    string
		request fmt.Stringer
		want    string
	}{
		{"the local cluster is not mentioned", request("", "ns", "pod"), "ns/pod"},
		{"another cluster comes first", request("eu", "ns", "pod"), "eu/ns/pod"},
		{"a cluster's name may have a slash itself", request("fleet/eu", "ns", "pod"), "fleet/eu/ns/pod"},
		{"an object without a namespace keeps controller-runtime's form", request("eu", "", "node"), "eu//node"},
		{"any request of the local cluster is its own text", mcreconcile.WithCluster[named]{Request: "job"}, "the job"},
		{"any request of another cluster follows the cluster", mcreconcile.WithCluster[named]{Request: "job", ClusterName: "eu"}, "eu/the job"},
		{"a request without a text is printed as a value", mcreconcile.WithCluster[ticket]{Request: ticket{7}, ClusterName: "eu"}, "eu/{7}"},
		{
			"controller-runtime's request in the general form reads like a Request",
			mcreconcile.WithCluster[reconcile.Request]{Request: request("", "ns", "pod").Request, ClusterName: "eu"},
			"eu/ns/pod",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tc.request.String()).To(Equal(tc.want))
			g.Expect(fmt.Sprint(tc.request)).To(Equal(tc.want))
		})
	}
}

func TestRequestsAreLoggedWithTheirCluster(t *testing.T) {
	for _, tc := range []struct {
		name    string
		request any
		want    string
	}{
		{"an object of a cluster", request("eu", "ns", "pod"), `{"cluster":"eu","namespace":"ns","name":"pod"}`},
		{"an object without a namespace", request("eu", "", "node"), `{"cluster":"eu","name":"node"}`},
		{"an object of the local cluster", request("", "ns", "pod"), `{"cluster":"","namespace":"ns","name":"pod"}`},
		{"any request is logged as its text", mcreconcile.WithCluster[ticket]{Request: ticket{7}, ClusterName: "eu"}, `"eu/{7}"`},
		{
			"so is controller-runtime's request in the general form",
			mcreconcile.WithCluster[reconcile.Request]{Request: request("", "ns", "pod").Request, ClusterName: "eu"},
			`"eu/ns/pod"`,
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

// checkCluster is for any request type what the runtime does with it.
func checkCluster[request mcreconcile.ClusterAware[request]](t *testing.T, req request) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(req.Cluster()).To(BeEmpty())
	eu := req.WithCluster("eu")
	g.Expect(eu.Cluster()).To(BeEquivalentTo("eu"))
	g.Expect(req.Cluster()).To(BeEmpty(), "WithCluster leaves the original as it is")
	g.Expect(eu == req).To(BeFalse(), "the same object in two clusters makes two requests")
	g.Expect(eu.WithCluster("us").WithCluster("eu") == eu).To(BeTrue(), "only the name changes")
	g.Expect(eu.WithCluster("") == req).To(BeTrue(), "the empty name is the local cluster")
}

func TestTheClusterOfARequestCanBeReadAndSet(t *testing.T) {
	t.Run("of a Request", func(t *testing.T) {
		checkCluster(t, request("", "ns", "pod"))
	})
	t.Run("of any comparable type", func(t *testing.T) {
		checkCluster(t, mcreconcile.WithCluster[ticket]{Request: ticket{7}})
	})
	t.Run("of controller-runtime's request in the general form", func(t *testing.T) {
		checkCluster(t, mcreconcile.WithCluster[reconcile.Request]{Request: request("", "ns", "pod").Request})
	})
}
