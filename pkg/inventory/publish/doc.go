// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package publish writes the profiles of an inventory.Source into a hub as
// ClusterProfiles (KEP-4322), so that clusters of kind, of kubeconfigs or of Cluster
// API become an inventory that every consumer can read.
//
//	publisher, err := publish.New(publish.Options{
//		Hub: hubConfig, Source: source, Namespace: "fleet", ManagerName: "laptop",
//		Probe: func(ctx context.Context, profile *inventory.Profile) (publish.ProbeResult, error) {
//			access, err := method.Resolve(ctx, profile) // of package credentials
//			if err != nil {
//				return publish.ProbeResult{}, err
//			}
//			defer access.Release()
//			return publish.ProbeCluster(ctx, access.RESTConfig())
//		},
//	})
//	…
//	err = publisher.Run(ctx)
//
// Leader election is the caller's, for example that of a controller-runtime manager.
//
// # What is published
//
// Names, labels, annotations, display names, access providers, properties and
// conditions are those of the source, in the namespace and with the manager name of
// the options. A probe adds the condition ControlPlaneHealthy, the Kubernetes version
// and, if the source has none, the cluster's ID. The label
// inventory.LabelMemberID is set from that ID if the source does not set it. What a
// probe has observed stays published while the cluster does not respond. Each profile
// satisfies inventory.Validate, so it is valid in v1alpha1 and v1alpha2 and contains no
// secret that is known as such; the version that the hub serves is written.
//
// # What it promises
//
//   - A profile is changed or removed only if it has the manager name and the label
//     LabelPublisher. A cluster whose name another profile has is reported as Refused.
//   - Writes are server-side apply with the field manager FieldManager: labels,
//     annotations and conditions that others add stay. A profile is created by a
//     request that fails if it exists, and removed only as it was last seen.
//   - A profile is removed only after its source has synced. A source or a hub that
//     fails, and a publisher that ends, remove nothing.
//   - Each profile is written every Options.WriteInterval on average, at most; see
//     there. A publisher that is restarted changes nothing that has not changed.
//   - No cluster delays another: each has a goroutine, its probe a time limit, and at
//     most 32 probes are in their first second at the same time. At most 16 requests to
//     the hub are under way.
//
// # What it does not do
//
// It does not create the namespace, and does not install the API. A cluster's own word
// decides its ID if the source has none: publish only clusters that you trust not to
// take the ID of another one.
package publish
