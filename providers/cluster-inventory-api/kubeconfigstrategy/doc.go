// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfigstrategy says where the provider gets a cluster's
// connection from: a kubeconfig in a Secret of the hub, or a credential plugin
// (KEP-5339).
//
//	clusterinventoryapi.Options{
//		KubeconfigStrategyOption: kubeconfigstrategy.Option{
//			Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "my-controller"},
//		},
//	}
//
// Secrets are read through the cache of the provider's manager, which by default
// lists, watches and holds those of all namespaces. Narrow it by
// manager.Options.Cache.ByObject to the namespaces of the profiles, which bounds
// the rights that it takes (list and watch), and to the label
// SecretLabelKeyClusterInventoryConsumer, which bounds what it holds.
//
// It is a thin shell over pkg/credentials. New programs give the provider a
// credentials.Method, which can do more.
package kubeconfigstrategy
