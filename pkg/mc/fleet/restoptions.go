// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/restoptions"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
)

// addedWrapper returns the wrapper that NewCluster has added to the config that it got,
// or to that of its cluster, or nil. It returns an error if NewCluster has set a field
// there that has no effect beside the transport of the config, or that transport.
func addedWrapper(before, got *rest.Config, cl cluster.Cluster) (transport.WrapperFunc, error) {
	made := got
	if cl != nil && !identity.IsNil(cl) {
		made = cmp.Or(cl.GetConfig(), got)
	}
	for _, after := range []*rest.Config{got, made} {
		if !restoptions.SameTransport(before.Transport, after.Transport) {
			return nil, errors.New("NewCluster: must not replace Transport of the config, which authenticates: add a wrapper with Wrap")
		}
		if field := restoptions.ConnectionChange(before, after); field != "" {
			return nil, fmt.Errorf("NewCluster: must not set %s of the config, which would be ignored: the connection exists already; set it in the credentials", field)
		}
	}
	return made.WrapTransport, nil
}
