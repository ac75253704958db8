// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// unknown is in no scheme.
type unknown struct{ corev1.ConfigMap }

func TestMisuse(t *testing.T) {
	type job = mcreconcile.WithCluster[string]
	mgr := newManager(t, mctest.New(t), nil)
	rec, jobs := &recorder[mcreconcile.Request]{}, &recorder[job]{}
	build := func(b *mcbuilder.Builder) error { return b.Complete(rec) }
	on := mcbuilder.ControllerManagedBy
	for _, tc := range []struct {
		name  string
		build func() error
		want  string
	}{
		{
			name:  "no reconciler",
			build: func() error { return on(mgr).For(&corev1.ConfigMap{}).Complete(nil) },
			want:  "must provide a non-nil Reconciler",
		},
		{
			name:  "no manager",
			build: func() error { return build(on(nil).For(&corev1.ConfigMap{})) },
			want:  "must provide a non-nil Manager",
		},
		{
			name: "two reconcilers",
			build: func() error {
				return build(on(mgr).For(&corev1.ConfigMap{}).WithOptions(mccontroller.Options{Reconciler: rec}))
			},
			want: "the reconciler was given to WithOptions() and to Build() or Complete()",
		},
		{
			name:  "two kinds to reconcile",
			build: func() error { return build(on(mgr).For(&corev1.ConfigMap{}).For(&corev1.Secret{})) },
			want:  "For(...) must be called once only: a controller reconciles one kind",
		},
		{
			name:  "nothing to watch",
			build: func() error { return build(on(mgr).Named("idle")) },
			want:  "the controller watches nothing and would never reconcile: use For(), Watches() or WatchesRawSource()",
		},
		{
			name:  "something owned by nobody",
			build: func() error { return build(on(mgr).Named("test").Owns(&corev1.ConfigMap{})) },
			want:  "Owns() needs For(): it enqueues owners of the kind given there",
		},
		{
			name:  "no name and no kind",
			build: func() error { return build(watches[2].watch(on(mgr))) },
			want:  "the controller needs a name: use For() or Named()",
		},
		{
			name:  "no object",
			build: func() error { return build(on(mgr).For(&corev1.ConfigMap{}).Owns(nil)) },
			want:  "the object given to Owns() or Watches() must not be nil",
		},
		{
			name:  "no handler",
			build: func() error { return build(on(mgr).Named("test").Watches(&corev1.ConfigMap{}, nil)) },
			want:  "the handler for *v1.ConfigMap must not be nil",
		},
		{
			name:  "a kind that is in no scheme",
			build: func() error { return build(on(mgr).For(&unknown{})) },
			want:  "no kind is registered for the type builder_test.unknown",
		},
		{
			name: "For, for requests that it cannot make",
			build: func() error {
				return mcbuilder.TypedControllerManagedBy[job](mgr).For(&corev1.ConfigMap{}).Complete(jobs)
			},
			want: "For() enqueues reconcile.Request, but the controller takes reconcile.WithCluster[string]: use Watches()",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(tc.build()).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestANameIsTakenOnce(t *testing.T) {
	g := NewWithT(t)
	validated := func(o *mcmanager.Options) { o.Controller.SkipNameValidation = nil }
	mgr := newManager(t, mctest.New(t), nil, validated)
	// Names live as long as the process, which may run the test again.
	name := fmt.Sprint("taken-", time.Now().UnixNano())
	build := func() error {
		return mcbuilder.ControllerManagedBy(mgr).Named(name).For(&corev1.ConfigMap{}).
			Complete(&recorder[mcreconcile.Request]{})
	}
	g.Expect(build()).To(Succeed())
	g.Expect(build()).To(MatchError(ContainSubstring("controller with name " + name + " already exists")))
}
