// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
)

//nolint:staticcheck // deprecated names must compile too
func _[T runtime.Object]() {
	type (
		builder         = *mcbuilder.WebhookBuilder[T]
		contextFunc     = func(context.Context, *http.Request) context.Context
		converterFunc   = func(*runtime.Scheme) (conversion.Converter, error)
		logConstructor  = func(logr.Logger, *admission.Request) logr.Logger
		defaulterOption = admission.DefaulterOption
	)
	is[func(manager.Manager, T) builder](mcbuilder.WebhookManagedBy[T])

	is[func(builder) error](builder.Complete)
	is[func(builder, bool) builder](builder.RecoverPanic)
	is[func(builder, contextFunc) builder](builder.WithContextFunc)
	is[func(builder, converterFunc) builder](builder.WithConverter)
	is[func(builder, admission.CustomDefaulter, ...defaulterOption) builder](builder.WithCustomDefaulter)
	is[func(builder, admission.CustomValidator) builder](builder.WithCustomValidator)
	is[func(builder, admission.Defaulter[T], ...defaulterOption) builder](builder.WithDefaulter)
	is[func(builder, string) builder](builder.WithDefaulterCustomPath)
	is[func(builder, logConstructor) builder](builder.WithLogConstructor)
	is[func(builder, admission.Validator[T]) builder](builder.WithValidator)
	is[func(builder, string) builder](builder.WithValidatorCustomPath)
}
