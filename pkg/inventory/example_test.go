// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// list is a source with a fixed list of profiles.
type list []*inventory.Profile

// Run implements inventory.Source.
func (l list) Run(ctx context.Context, sink inventory.Sink) error {
	for _, profile := range l {
		sink.Put(profile)
	}
	sink.Synced()
	<-ctx.Done()
	return nil
}

// printer is a sink that prints cluster names, and stops the source once it has
// synced.
type printer struct{ stop context.CancelFunc }

func (p printer) Put(profile *inventory.Profile) {
	fmt.Println("put", inventory.ClusterName(profile))
}

func (p printer) Remove(key inventory.Key) { fmt.Println("remove", key) }
func (p printer) Synced()                  { p.stop() }

// run prints the clusters of a source.
func run(source inventory.Source) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := source.Run(ctx, printer{stop}); err != nil {
		fmt.Println(err)
	}
}

// profile returns a profile with the properties ClusterID and region.
func profile(name, clusterID, region string) *inventory.Profile {
	return &inventory.Profile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name},
		Status: v1alpha1.ClusterProfileStatus{Properties: []v1alpha1.Property{
			{Name: inventory.PropertyClusterID, Value: clusterID},
			{Name: "region", Value: region},
		}},
	}
}

// Implement a Source for an inventory of your own, and a Sink to read one.
func Example() {
	run(list{profile("a", "", "eu"), profile("b", "", "us")})
	// Output:
	// put fleet/a
	// put fleet/b
}

func ExampleSelect() {
	source := list{profile("a", "", "eu"), profile("b", "", "us")}
	inEurope, err := inventory.Selection{Properties: []inventory.PropertyExpression{
		{Name: "region", Operator: inventory.PropertyIn, Values: []string{"eu"}},
	}}.Predicate()
	if err != nil {
		fmt.Println(err)
		return
	}
	run(inventory.Select(source, inEurope))
	// Output:
	// put fleet/a
	// remove fleet/b
}

// Sources with the same profile names are merged under different cluster names.
func ExampleMerge() {
	hubA, hubB := list{profile("eu", "", "eu")}, list{profile("eu", "", "eu")}
	run(inventory.Merge(
		inventory.Rename(hubA, inventory.Prefix("a#")),
		inventory.Rename(hubB, inventory.Prefix("b#")),
	))
	// Unordered output:
	// put a#fleet/eu
	// put b#fleet/eu
}

func ExampleRename() {
	source := list{profile("a", "", "eu"), profile("b", "", "us")}
	run(inventory.Rename(source, func(clusterName string) string {
		return map[string]string{"fleet/a": "frankfurt"}[clusterName] // "" keeps the name
	}))
	// Output:
	// put frankfurt
	// put fleet/b
}
