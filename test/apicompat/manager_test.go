// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/manager/coordinator/basic"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

const _ multicluster.ClusterName = mcmanager.LocalCluster

var (
	_ func(*rest.Config, multicluster.Provider, manager.Options, ...mcmanager.Option) (mcmanager.Manager, error) = mcmanager.New
	_ func(manager.Manager, multicluster.Provider, ...mcmanager.Option) (mcmanager.Manager, error)               = mcmanager.WithMultiCluster
	_ func(mcmanager.Coordinator) mcmanager.Option                                                               = mcmanager.WithCoordinator
	_ *manager.Options                                                                                           = (*mcmanager.Options)(nil)
)

type coordinator interface {
	AddAware(multicluster.Aware)
	Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error
	Runnable() manager.Runnable
}

type mcManager interface {
	Add(mcmanager.Runnable) error
	Elected() <-chan struct{}
	AddMetricsServerExtraHandler(path string, handler http.Handler) error
	AddHealthzCheck(name string, check healthz.Checker) error
	AddReadyzCheck(name string, check healthz.Checker) error
	Start(ctx context.Context) error
	GetWebhookServer() webhook.Server
	GetLogger() logr.Logger
	GetControllerOptions() config.Controller
	GetCluster(ctx context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error)
	ClusterFromContext(ctx context.Context) (cluster.Cluster, error)
	GetManager(ctx context.Context, clusterName multicluster.ClusterName) (manager.Manager, error)
	GetLocalManager() manager.Manager
	GetProvider() multicluster.Provider
	GetFieldIndexer() client.FieldIndexer
	multicluster.Aware
}

type mcRunnable interface {
	manager.Runnable
	multicluster.Aware
}

var (
	_ mcmanager.Coordinator = coordinator(nil)
	_ coordinator           = mcmanager.Coordinator(nil)
	_ mcmanager.Manager     = mcManager(nil)
	_ mcManager             = mcmanager.Manager(nil)
	_ mcmanager.Runnable    = mcRunnable(nil)
	_ mcRunnable            = mcmanager.Runnable(nil)
)

// The package basic.
var (
	_ func() *basic.Coordinator                                                                  = basic.New
	_ func(*basic.Coordinator, multicluster.Aware)                                               = (*basic.Coordinator).AddAware
	_ func(*basic.Coordinator, context.Context, multicluster.ClusterName, cluster.Cluster) error = (*basic.Coordinator).Engage
	_ func(*basic.Coordinator) manager.Runnable                                                  = (*basic.Coordinator).Runnable
	_ mcmanager.Coordinator                                                                      = &basic.Coordinator{}
)
