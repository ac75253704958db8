// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// inTest takes the place of a test's *testing.T in an example.
func inTest() (t testing.TB, end func()) {
	s := &standIn{}
	return s, func() {
		s.end()
		for _, err := range s.errors {
			fmt.Println(err)
		}
	}
}

func ExampleStartManager() {
	t, end := inTest() // in a test: its own t
	defer end()

	cluster := mctest.New(t)
	mgr, err := ctrl.NewManager(cluster.Config(), mctest.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	reconciled := make(chan string)
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.Namespace{}).
		Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			namespace := &corev1.Namespace{}
			if err := mgr.GetClient().Get(ctx, req.NamespacedName, namespace); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if req.Name == "default" {
				reconciled <- req.Name
			}
			return ctrl.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	stop := mctest.StartManager(t, mgr)

	select {
	case name := <-reconciled:
		fmt.Println("reconciled namespace", name)
	case <-time.After(mctest.Timeout):
		t.Fatal("the namespace is not reconciled")
	}
	stop() // the end of the test does the same
	// Output: reconciled namespace default
}
