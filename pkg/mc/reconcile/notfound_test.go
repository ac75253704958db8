// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/parking"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestClusterNotFoundWrapper(t *testing.T) {
	type key struct{}
	other := errors.New("other")
	again := reconcile.Result{RequeueAfter: time.Minute}
	for _, tc := range []struct {
		name       string
		result     reconcile.Result
		err        error
		wantResult reconcile.Result
		wantErr    error
	}{
		{
			name: "success", result: again, wantResult: again,
		},
		{
			name: "other errors are returned with the result", result: again, err: other, wantResult: again, wantErr: other,
		},
		{
			name:    "a terminal error remains terminal",
			err:     reconcile.TerminalError(other),
			wantErr: reconcile.TerminalError(nil),
		},
		{
			name: "a removed cluster ends the request", err: multicluster.ErrClusterNotFound,
		},
		{
			name: "a wrapped error", err: fmt.Errorf("cannot read the pod: %w", multicluster.NotFoundError("eu")),
		},
		{
			name: "one of several errors", err: errors.Join(other, multicluster.NotFoundError("eu")),
		},
		{
			name: "the result of the reconciler is ignored", result: again, err: multicluster.NotFoundError("eu"),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			want, ctx := request("eu", "ns", "pod"), context.WithValue(t.Context(), key{}, true)
			var calls int
			wrapper := mcreconcile.NewClusterNotFoundWrapper(mcreconcile.Func(func(got context.Context, req mcreconcile.Request) (reconcile.Result, error) {
				calls++
				g.Expect(got).To(BeIdenticalTo(ctx))
				g.Expect(req).To(Equal(want))
				return tc.result, tc.err
			}))
			result, err := wrapper.Reconcile(ctx, want)
			g.Expect(calls).To(Equal(1))
			g.Expect(result).To(Equal(tc.wantResult))
			if tc.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(tc.wantErr))
			}
		})
	}
}

func TestClusterNotReady(t *testing.T) {
	type parked struct {
		until multicluster.ClusterName
		takes bool
	}
	retry := reconcile.Result{RequeueAfter: 30 * time.Second}
	unnamed := fmt.Errorf("no name: %w", multicluster.ErrClusterNotReady)
	for _, tc := range []struct {
		name       string
		err        error
		parking    *parked // nil: the request cannot wait
		wantResult reconcile.Result
		wantParked bool
	}{
		{
			name: "waits for the engagement, at most 10 minutes", err: multicluster.NotReadyError("us", "Connecting"),
			parking: &parked{until: "us", takes: true}, wantParked: true, wantResult: reconcile.Result{RequeueAfter: 10 * time.Minute},
		},
		{
			name: "is retried if no more requests can wait", err: multicluster.NotReadyError("us", "Connecting"),
			parking: &parked{until: "us"}, wantParked: true, wantResult: retry,
		},
		{
			name: "is retried without a controller", err: multicluster.NotReadyError("us", "Connecting"),
			wantResult: retry,
		},
		{
			name: "is retried if the error names no cluster", err: unnamed,
			parking: &parked{takes: true}, wantResult: retry,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, asked := t.Context(), false
			if tc.parking != nil {
				ctx = parking.With(ctx, func(until multicluster.ClusterName) bool {
					asked = true
					g.Expect(until).To(Equal(tc.parking.until))
					return tc.parking.takes
				})
			}
			wrapper := mcreconcile.NewClusterNotFoundWrapper(mcreconcile.Func(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: time.Hour}, fmt.Errorf("wrapped: %w", tc.err)
			}))
			result, err := wrapper.Reconcile(ctx, request("eu", "ns", "pod"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result).To(Equal(tc.wantResult))
			g.Expect(asked).To(Equal(tc.wantParked))
		})
	}
}

func TestDroppedRequestIsLogged(t *testing.T) {
	gone := multicluster.NotFoundError("gone")
	for _, tc := range []struct {
		name      string
		verbosity int
		err       error
		want      []string // JSON of the lines
	}{
		{
			name: "with the missing cluster", verbosity: 1, err: gone,
			want: []string{`{
				"logger": "", "level": 1, "msg": "Dropped request: the reconciler needs a cluster that does not exist",
				"request": {"cluster": "eu", "namespace": "ns", "name": "pod"}, "error": "cluster \"gone\": cluster not found"
			}`},
		},
		{name: "not at verbosity 0", verbosity: 0, err: gone},
		{name: "not if it waits for the cluster", verbosity: 1, err: multicluster.NotReadyError("gone", "Connecting")},
		{name: "not for other errors", verbosity: 1, err: errors.New("other")},
		{name: "not for success", verbosity: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var lines []string
			logger := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{Verbosity: tc.verbosity})
			wrapper := mcreconcile.NewClusterNotFoundWrapper(mcreconcile.Func(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, tc.err
			}))
			_, _ = wrapper.Reconcile(log.IntoContext(t.Context(), logger), request("eu", "ns", "pod"))
			g := NewWithT(t)
			g.Expect(lines).To(HaveLen(len(tc.want)))
			for i, want := range tc.want {
				g.Expect(lines[i]).To(MatchJSON(want))
			}
		})
	}
}

type nameless struct{}

func (*nameless) Reconcile(context.Context, ticket) (reconcile.Result, error) {
	return reconcile.Result{}, multicluster.ErrClusterNotFound
}

type titled struct{ nameless }

func (*titled) String() string { return "ticket seller" }

func TestClusterNotFoundWrapperString(t *testing.T) {
	for _, tc := range []struct {
		name    string
		wrapped reconcile.TypedReconciler[ticket]
		want    string
	}{
		{"reconciler with a String method", &titled{}, "ticket seller"},
		{"reconciler without a String method", &nameless{}, "*reconcile_test.nameless"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			wrapper := mcreconcile.NewClusterNotFoundWrapper(tc.wrapped)
			g.Expect(fmt.Sprint(wrapper)).To(Equal(tc.want))
			_, err := wrapper.Reconcile(t.Context(), ticket{7})
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}
