// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package single_test

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/providers/single"
)

func Example() {
	config := &rest.Config{Host: "https://eu.example.com"}
	cl, err := cluster.New(config)
	if err != nil {
		fmt.Println("Cannot create the cluster:", err)
		return
	}
	mgr, err := mcmanager.New(config, single.New("eu", cl), mcmanager.Options{})
	if err != nil {
		fmt.Println("Cannot create the manager:", err)
		return
	}
	// The manager runs the cluster too.
	if err := mgr.GetLocalManager().Add(cl); err != nil {
		fmt.Println("Cannot add the cluster:", err)
	}
	// Add controllers, then call mgr.Start.
}
