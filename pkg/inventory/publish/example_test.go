// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/publish"
)

// Keep the profiles of a source in a hub until the context ends.
func ExamplePublisher_Run() {
	hub := &rest.Config{Host: "https://hub.example.com"}
	members := map[string]*rest.Config{"eu": {Host: "https://eu.example.com"}}
	eu, err := inventory.Synthesize(inventory.Synthetic{ClusterName: "eu", Manager: "static"})
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := publish.New(publish.Options{
		Hub: hub, Source: newSource(eu), Namespace: "fleet", ManagerName: "laptop",
		Probe: func(ctx context.Context, profile *inventory.Profile) (publish.ProbeResult, error) {
			return publish.ProbeCluster(ctx, members[inventory.ClusterName(profile)])
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := publisher.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
}

func ExampleOptions_Validate() {
	options := publish.Options{Hub: &rest.Config{}, Source: newSource(), ManagerName: "my laptop"}
	fmt.Println(options.Validate())
	// Output:
	// must specify Namespace, in which the profiles are published
	// invalid ManagerName "my laptop": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
}
