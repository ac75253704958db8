// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"
	"flag"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/scheme"

	"github.com/rollcall-dev/rollcall/pkg/mc"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// Aliases.
var (
	_ *mcbuilder.Builder    = (*mc.Builder)(nil)
	_ *schema.GroupResource = (*mc.GroupResource)(nil)
	_ *schema.GroupVersion  = (*mc.GroupVersion)(nil)
	_ *mcmanager.Manager    = (*mc.Manager)(nil)
	_ *metav1.ObjectMeta    = (*mc.ObjectMeta)(nil)
	_ *mcmanager.Options    = (*mc.Options)(nil)
	_ *mcreconcile.Request  = (*mc.Request)(nil)
	_ *reconcile.Result     = (*mc.Result)(nil)
	_ *scheme.Builder       = (*mc.SchemeBuilder)(nil) //nolint:staticcheck // deprecated names must compile too
	_ *metav1.TypeMeta      = (*mc.TypeMeta)(nil)
)

// Variables.
var (
	_ *func(*flag.FlagSet)                                                                                                  = &mc.RegisterFlags
	_ *func() *rest.Config                                                                                                  = &mc.GetConfigOrDie
	_ *func() (*rest.Config, error)                                                                                         = &mc.GetConfig
	_ *func(mcmanager.Manager) *mcbuilder.Builder                                                                           = &mc.NewControllerManagedBy
	_ *func(*rest.Config, multicluster.Provider, manager.Options, ...mcmanager.Option) (mcmanager.Manager, error)           = &mc.NewManager
	_ *func(context.Context, client.Client, client.Object, controllerutil.MutateFn) (controllerutil.OperationResult, error) = &mc.CreateOrUpdate
	_ *func(metav1.Object, metav1.Object, *runtime.Scheme, ...controllerutil.OwnerReferenceOption) error                    = &mc.SetControllerReference
	_ *func() context.Context                                                                                               = &mc.SetupSignalHandler
	_ *logr.Logger                                                                                                          = &mc.Log
	_ *func(context.Context, ...any) logr.Logger                                                                            = &mc.LoggerFrom
	_ *func(context.Context, logr.Logger) context.Context                                                                   = &mc.LoggerInto
	_ *func(logr.Logger)                                                                                                    = &mc.SetLogger
)

func _[T runtime.Object]() {
	is[func(manager.Manager, T) *mcbuilder.WebhookBuilder[T]](mc.NewWebhookManagedBy[T])
}
