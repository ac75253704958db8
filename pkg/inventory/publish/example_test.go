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

// Publish the clusters of a source once, and see what was done.
func ExamplePublisher_Once() {
	once := func(ctx context.Context, hub *rest.Config, source inventory.Source, members map[string]*rest.Config) error {
		publisher, err := publish.New(publish.Options{
			Hub: hub, Source: source, Namespace: "fleet", ManagerName: "laptop",
			Probe: func(ctx context.Context, profile *inventory.Profile) (publish.ProbeResult, error) {
				return publish.ProbeCluster(ctx, members[inventory.ClusterName(profile)])
			},
		})
		if err != nil {
			return err
		}
		statuses, err := publisher.Once(ctx)
		for _, s := range statuses {
			fmt.Println(s.Name, s.Outcome, s.Message)
		}
		return err
	}
	_ = once // needs a hub
}

func ExampleOptions_Validate() {
	options := publish.Options{Hub: &rest.Config{}, Source: newSource(), ManagerName: "my laptop"}
	fmt.Println(options.Validate())
	// Output:
	// must specify Namespace, in which the profiles are published
	// invalid ManagerName "my laptop": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
}
