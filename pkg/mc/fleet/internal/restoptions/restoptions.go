// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package restoptions applies the REST options of users to configurations.
package restoptions

import (
	"fmt"
	"net/http"
	"reflect"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Apply sets the default QPS, which is -1, and applies the options. They must not
// change what concerns connections.
func Apply(config *rest.Config, options []func(*rest.Config) error) error {
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1
	}
	before := *config
	config.WrapTransport = nil
	for _, option := range options {
		if err := option(config); err != nil {
			return fmt.Errorf("REST option: %w", err)
		}
	}
	// An option may have replaced the wrapper that authenticates instead of adding one.
	config.WrapTransport = transport.Wrappers(before.WrapTransport, config.WrapTransport)
	if field := ConnectionChange(&before, config); field != "" {
		return fmt.Errorf("REST option: must not change %s, which comes from the credentials", field)
	}
	return nil
}

// ConnectionChange returns the name of a changed field that concerns connections, or
// "".
func ConnectionChange(before, after *rest.Config) string {
	switch {
	case before.Host != after.Host:
		return "Host"
	case before.APIPath != after.APIPath:
		return "APIPath"
	case !reflect.DeepEqual(before.TLSClientConfig, after.TLSClientConfig):
		return "TLSClientConfig"
	case before.DisableCompression != after.DisableCompression:
		return "DisableCompression"
	case !SameTransport(before.Transport, after.Transport):
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

// SameTransport reports whether both are the same transport.
func SameTransport(a, b http.RoundTripper) bool {
	if a == nil || b == nil {
		return a == b
	}
	return reflect.TypeOf(a).Comparable() && a == b
}
