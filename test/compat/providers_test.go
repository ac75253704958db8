// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"testing"

	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	clusterapi "sigs.k8s.io/multicluster-runtime/providers/cluster-api"
	"sigs.k8s.io/multicluster-runtime/providers/multi"
	"sigs.k8s.io/multicluster-runtime/providers/nop"
)

// Programs combine the providers under the other path, also those whose options have
// types of other modules.
func TestProvidersUnderTheOtherPath(t *testing.T) {
	all := multi.New(multi.Options{})
	for name, provider := range map[string]multicluster.Provider{
		"nop":         nop.New(),
		"cluster-api": clusterapi.New(clusterapi.Options{ObjectToWatch: &clusterv1beta2.Cluster{}}),
	} {
		if err := all.AddProvider(name, provider); err != nil {
			t.Error(err)
		}
	}
	if names := all.ProviderNames(); len(names) != 2 {
		t.Errorf("providers %v", names)
	}
}
