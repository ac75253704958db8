// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"net/http"
	"reflect"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// tune applies the RESTOptions to a configuration.
func (o *ConnectionOptions) tune(config *rest.Config) error {
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1
	}
	before := *config
	config.WrapTransport = nil
	for _, option := range o.RESTOptions {
		if err := option(config); err != nil {
			return fmt.Errorf("REST option: %w", err)
		}
	}
	// An option may have replaced the wrapper that authenticates instead of adding one.
	config.WrapTransport = transport.Wrappers(before.WrapTransport, config.WrapTransport)
	if field := connectionChange(&before, config); field != "" {
		return fmt.Errorf("REST option: must not change %s, which comes from the credentials", field)
	}
	return nil
}

// connectionChange returns the name of a changed field that concerns connections, or
// "".
func connectionChange(before, after *rest.Config) string {
	switch {
	case before.Host != after.Host:
		return "Host"
	case before.APIPath != after.APIPath:
		return "APIPath"
	case !reflect.DeepEqual(before.TLSClientConfig, after.TLSClientConfig):
		return "TLSClientConfig"
	case before.DisableCompression != after.DisableCompression:
		return "DisableCompression"
	case !sameTransport(before.Transport, after.Transport):
		return "Transport"
	case !sameFunc(before.Dial, after.Dial):
		return "Dial"
	case !sameFunc(before.Proxy, after.Proxy):
		return "Proxy"
	}
	return ""
}

// sameFunc reports whether two functions have the same code.
func sameFunc(a, b any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func sameTransport(a, b http.RoundTripper) bool {
	if a == nil || b == nil {
		return a == b
	}
	return reflect.TypeOf(a).Comparable() && a == b
}
