// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/resource"
)

// Types are shared by servers with the same Go types: codecs, discovery
// documents, and schemas for server-side apply.
type Types struct {
	scheme    *runtime.Scheme
	protobuf  *protobuf.Serializer
	catalog   *resource.Catalog
	converter func() managedfields.TypeConverter
}

// NewTypes returns the built-in types and those of the schemes.
// Kinds named in clusterScoped have no namespace.
func NewTypes(clusterScoped []schema.GroupKind, schemes ...*runtime.Scheme) *Types {
	scheme, builtin := newScheme(), newScheme()
	for _, more := range schemes {
		for gvk := range more.AllKnownTypes() {
			if scheme.Recognizes(gvk) {
				continue
			}
			if object, err := more.New(gvk); err == nil {
				scheme.AddKnownTypeWithName(gvk, object)
			}
		}
	}
	return &Types{
		scheme:   scheme,
		protobuf: protobuf.NewSerializer(scheme, scheme),
		catalog:  resource.FromScheme(scheme, builtin, clusterScoped...),
		converter: sync.OnceValue(func() managedfields.TypeConverter {
			return clientgoapply.NewTypeConverter(scheme)
		}),
	}
}

// DefaultTypes are the built-in types.
var DefaultTypes = sync.OnceValue(func() *Types { return NewTypes(nil) })

// newScheme holds the types of Kubernetes.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// Scheme holds the types of the server. It must not be changed.
func (s *Server) Scheme() *runtime.Scheme { return s.types.scheme }
