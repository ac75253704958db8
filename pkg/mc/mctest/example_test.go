// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// exampleTest is the *testing.T of an example. End does what the end of a test
// does.
func exampleTest() (t testing.TB, end func()) {
	s := &standIn{}
	return s, func() {
		s.end()
		for _, err := range s.errors {
			fmt.Println(err)
		}
	}
}

func ExampleNew() {
	t, end := exampleTest() // in a test: its own t
	defer end()

	cluster := mctest.New(t, mctest.Options{Objects: []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}},
	}})
	c, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	settings := &corev1.ConfigMap{}
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "settings"}, settings); err != nil {
		t.Fatal(err)
	}
	fmt.Println("found", settings.Name)
	fmt.Println("requests:", cluster.Requests("get", "configmaps"))
	// Output:
	// found settings
	// requests: 1
}

func ExampleNewFleet() {
	t, end := exampleTest() // in a test: its own t
	defer end()

	fleet := mctest.NewFleet(t, 3, mctest.Options{Name: "member"})
	for _, cluster := range fleet.Clusters() {
		namespaces := &corev1.NamespaceList{}
		if err := cluster.List(namespaces); err != nil { // without HTTP
			t.Fatal(err)
		}
		fmt.Println(cluster.Name(), "has", len(namespaces.Items), "namespaces")
	}
	// Output:
	// member-0 has 4 namespaces
	// member-1 has 4 namespaces
	// member-2 has 4 namespaces
}

func ExampleCluster_Fault() {
	t, end := exampleTest() // in a test: its own t
	defer end()

	cluster := mctest.New(t)
	c, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := func() error { return c.List(context.Background(), &corev1.SecretList{}) }

	lift := cluster.Fault(mctest.Forbidden.On("secrets").For("list"))
	fmt.Println("forbidden:", apierrors.IsForbidden(list()))
	lift()
	fmt.Println("after that:", list())

	cluster.RevokeToken(cluster.AdminToken())
	fmt.Println("unauthorized:", apierrors.IsUnauthorized(list()))
	// Output:
	// forbidden: true
	// after that: <nil>
	// unauthorized: true
}

func ExampleStartManager() {
	t, end := exampleTest() // in a test: its own t
	defer end()

	cluster := mctest.New(t)
	mgr, err := ctrl.NewManager(cluster.Config(), mctest.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	reconciled := make(chan string, 10)
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
		Complete(reconcile.Func(func(_ context.Context, req ctrl.Request) (ctrl.Result, error) {
			reconciled <- req.Name
			return ctrl.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	stop := mctest.StartManager(t, mgr)

	if err := cluster.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}); err != nil {
		t.Fatal(err)
	}
	select {
	case name := <-reconciled:
		fmt.Println("reconciled", name)
	case <-time.After(mctest.Timeout):
		t.Fatal("the ConfigMap is not reconciled")
	}
	stop() // the end of the test does the same
	// Output: reconciled settings
}
