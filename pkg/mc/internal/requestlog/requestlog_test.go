// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package requestlog_test

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/requestlog"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// printed returns the log line for a request.
func printed[request mcreconcile.ClusterAware[request]](objectKey string, in *request) string {
	var out string
	base := funcr.NewJSON(func(line string) { out = line }, funcr.Options{}).WithValues("controller", "c")
	requestlog.Constructor[request](base, objectKey)(in).Info("m")
	return out
}

func TestConstructor(t *testing.T) {
	pod := mcreconcile.Request{
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}},
		ClusterName: "eu",
	}
	local, node := pod.WithCluster(""), pod
	node.Namespace = ""
	for _, tc := range []struct {
		name string
		got  string
		want string
	}{
		{
			name: "a Request",
			got:  printed("Pod", &pod),
			want: `{"logger":"","level":0,"msg":"m","controller":"c","cluster":"eu","Pod":{"name":"a","namespace":"ns"},"namespace":"ns","name":"a"}`,
		},
		{
			name: "a Request of the local cluster",
			got:  printed("Pod", &local),
			want: `{"logger":"","level":0,"msg":"m","controller":"c","cluster":"","Pod":{"name":"a","namespace":"ns"},"namespace":"ns","name":"a"}`,
		},
		{
			name: "cluster-scoped object",
			got:  printed("Node", &node),
			want: `{"logger":"","level":0,"msg":"m","controller":"c","cluster":"eu","Node":{"name":"a"},"namespace":"","name":"a"}`,
		},
		{
			name: "a custom request",
			got:  printed("Pod", &mcreconcile.WithCluster[int]{Request: 7, ClusterName: "eu"}),
			want: `{"logger":"","level":0,"msg":"m","controller":"c","cluster":"eu"}`,
		},
		{
			name: "no request",
			got:  printed[mcreconcile.Request]("Pod", nil),
			want: `{"logger":"","level":0,"msg":"m","controller":"c"}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(tc.got).To(MatchJSON(tc.want))
		})
	}
}

func TestConstructorDoesNotAccumulateValues(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	construct := requestlog.Constructor[mcreconcile.Request](funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}), "object")
	req := mcreconcile.Request{ClusterName: "eu"}
	construct(&req).Info("first")
	construct(nil).Info("second")
	g.Expect(lines[0]).To(ContainSubstring(`"cluster":"eu"`))
	g.Expect(lines[1]).NotTo(ContainSubstring("cluster"))
}
