// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// exampleTB lets an example use mctest.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (tb *exampleTB) Helper()                           {}
func (tb *exampleTB) Cleanup(f func())                  { tb.cleanups = append(tb.cleanups, f) }
func (tb *exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// exampleManager returns a manager of API servers that run until the function is
// called.
func exampleManager() (mgr mcmanager.Manager, closeServers func()) {
	tb := &exampleTB{}
	servers := mctest.NewFleet(tb, 2, mctest.Options{Objects: []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"},
		Data:       map[string]string{"region": "north"},
	}}})
	mgr, err := mcmanager.New(servers.Cluster(0).Config(), &exampleProvider{config: servers.Cluster(1).Config()}, manager.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		panic(err)
	}
	return mgr, func() {
		for _, f := range tb.cleanups {
			f()
		}
	}
}

// exampleProvider has the cluster eu.
type exampleProvider struct {
	clusters.Clusters[cluster.Cluster]
	config *rest.Config
}

func (p *exampleProvider) Start(ctx context.Context, aware multicluster.Aware) error {
	cl, err := cluster.New(p.config)
	if err != nil {
		return err
	}
	if err := p.AddOrReplace(ctx, "eu", cl, aware); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
