// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // for servers that serve only this version
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/rollcall-dev/rollcall/providers/internal/informer"
)

// clusterTypes are the versions of Cluster, the preferred one first.
var clusterTypes = []client.Object{&clusterv1.Cluster{}, &clusterv1beta1.Cluster{}}

// clusterScheme has the types above.
var clusterScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	if err := clusterv1beta1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}()

// kinds are the types of the objects that are watched, the preferred one first.
type kinds map[schema.GroupVersionKind]reflect.Type

// versions returns the kinds of the options.
func versions(objectToWatch client.Object, scheme *runtime.Scheme) ([]schema.GroupVersionKind, kinds, error) {
	objects := clusterTypes
	if objectToWatch != nil {
		objects = []client.Object{objectToWatch}
	}
	all, order := kinds{}, []schema.GroupVersionKind(nil)
	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			if gvk, err = apiutil.GVKForObject(object, clusterScheme); err != nil {
				return nil, nil, fmt.Errorf("Options.ObjectToWatch: %T is not in the scheme of the manager", object)
			}
		}
		all[gvk], order = reflect.TypeOf(object).Elem(), append(order, gvk)
	}
	return order, all, nil
}

// decode returns the object in its type, or as it is if its content does not fit.
func (k kinds) decode(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	u.SetManagedFields(nil)
	goType := k[u.GroupVersionKind()]
	if goType == nil || goType == reflect.TypeFor[unstructured.Unstructured]() {
		return u, nil
	}
	into := reflect.New(goType).Interface()
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) == nil {
		return into, nil
	}
	return u, nil // an error would keep all objects from being read
}

// fits reports whether an object has the type of its kind.
func (k kinds) fits(object client.Object) bool {
	goType := k[object.GetObjectKind().GroupVersionKind()]
	return goType == reflect.TypeOf(object).Elem()
}

// typed returns an unstructured Cluster in its type, or the object as it is.
func typed(u *unstructured.Unstructured) client.Object {
	into, err := clusterScheme.New(u.GroupVersionKind())
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) != nil {
		return u
	}
	return into.(client.Object)
}

// apis returns how the kinds are read.
func apis(config *rest.Config, client *http.Client, order []schema.GroupVersionKind, namespace string) ([]informer.API, error) {
	dynamicClient, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, client)
	if err != nil {
		return nil, err
	}
	var all []informer.API
	for _, gvk := range order {
		resource := func() (dynamic.ResourceInterface, error) {
			if gvk.Kind == "Cluster" && clusterScheme.Recognizes(gvk) { // without discovery
				return dynamicClient.Resource(gvk.GroupVersion().WithResource("clusters")).Namespace(namespace), nil
			}
			mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
			if err != nil {
				return nil, err
			}
			if mapping.Scope.Name() == meta.RESTScopeNameRoot {
				return dynamicClient.Resource(mapping.Resource), nil
			}
			return dynamicClient.Resource(mapping.Resource).Namespace(namespace), nil
		}
		all = append(all, informer.API{
			List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				r, err := resource()
				if err != nil {
					return nil, err
				}
				return r.List(ctx, options)
			},
			Watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				r, err := resource()
				if err != nil {
					return nil, err
				}
				return r.Watch(ctx, options)
			},
		})
	}
	return all, nil
}
