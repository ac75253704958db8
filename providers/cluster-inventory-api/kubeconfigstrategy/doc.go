// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfigstrategy reads the connection to a cluster from a kubeconfig in
// a Secret of the hub, or gets it from a credential plugin (KEP-5339).
//
//	clusterinventoryapi.Options{
//		KubeconfigStrategyOption: kubeconfigstrategy.Option{
//			Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "my-controller"},
//		},
//	}
//
// Secrets are read through the cache of the provider's manager. By default it lists,
// watches and holds the Secrets of all namespaces. With
// manager.Options.Cache.ByObject, limit it to the namespaces of the profiles, so that
// permission to list and watch Secrets is needed only there, and to the label
// SecretLabelKeyClusterInventoryConsumer, so that it holds no other Secrets.
//
// Kubeconfigs are input: what they may do is decided by SecretStrategyOption.Kubeconfig,
// as with the kubeconfig provider.
//
// New programs set a credentials.Method, which has more options.
package kubeconfigstrategy
