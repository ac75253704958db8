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
// It is a thin shell over pkg/credentials. New programs give the provider a
// credentials.Method, which can do more.
package kubeconfigstrategy
