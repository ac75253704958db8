// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/file"
)

var (
	_ []string = file.DefaultKubeconfigGlobs

	_ func(file.Options) (*file.Provider, error) = file.New

	_ func(*file.Provider) []multicluster.ClusterName                                          = (*file.Provider).ClusterNames
	_ func(*file.Provider, context.Context, multicluster.ClusterName) (cluster.Cluster, error) = (*file.Provider).Get
	_ func(*file.Provider, context.Context, multicluster.ClusterName) (cluster.Cluster, error) = (*file.Provider).GetTyped
	_ func(*file.Provider, context.Context, client.Object, string, client.IndexerFunc) error   = (*file.Provider).IndexField
	_ func(*file.Provider, multicluster.ClusterName)                                           = (*file.Provider).Remove
	_ func(*file.Provider, context.Context, multicluster.Aware) error                          = (*file.Provider).RunOnce
	_ func(*file.Provider, context.Context, multicluster.Aware) error                          = (*file.Provider).Start
	_ func(*file.Provider, context.Context, mcmanager.Manager) error                           = (*file.Provider).Run

	_ = file.Options{
		KubeconfigFiles: []string(nil),
		KubeconfigDirs:  []string(nil),
		KubeconfigGlobs: []string(nil),
		Separator:       "",
		ClusterOptions:  []cluster.Option(nil),
	}
)
