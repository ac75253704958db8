// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Secrets returns how Secrets are read, with a client of Client.
func Secrets(config *rest.Config, client *http.Client, namespace string) (API, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientForConfigAndClient(config, client)
	if err != nil {
		return API{}, err
	}
	get := func(options *metav1.ListOptions) *rest.Request {
		return c.Get().NamespaceIfScoped(namespace, namespace != "").Resource("secrets").VersionedParams(options, scheme.ParameterCodec)
	}
	return API{
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.SecretList{}
			err := get(&options).Do(ctx).Into(list)
			return list, err
		},
		Watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return get(&options).Watch(ctx)
		},
	}, nil
}
