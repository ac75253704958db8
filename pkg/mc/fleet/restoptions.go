// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
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

// addedWrapper returns the wrapper that NewCluster has added to the config that it got,
// or to that of its cluster, or nil. It returns an error if NewCluster has set a field
// there that has no effect beside the transport of the config, or that transport.
func addedWrapper(before, got *rest.Config, cl cluster.Cluster) (transport.WrapperFunc, error) {
	made := got
	if cl != nil && !identity.IsNil(cl) {
		made = cmp.Or(cl.GetConfig(), got)
	}
	for _, after := range []*rest.Config{got, made} {
		if !sameTransport(before.Transport, after.Transport) {
			return nil, errors.New("NewCluster: must not replace Transport of the config, which authenticates: add a wrapper with Wrap")
		}
		if field := connectionChange(before, after); field != "" {
			return nil, fmt.Errorf("NewCluster: must not set %s of the config, which would be ignored: the connection exists already; set it in the credentials", field)
		}
	}
	return made.WrapTransport, nil
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
