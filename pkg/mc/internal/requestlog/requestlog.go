// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package requestlog makes the loggers that reconciles are given.
package requestlog

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// Constructor returns a log constructor for a controller. Its loggers carry
// the request's cluster and, for a Request, the object under the key objectKey
// (the kind, where that is known), its namespace and name: the keys that
// controller-runtime uses.
func Constructor[request mcreconcile.ClusterAware[request]](log logr.Logger, objectKey string) func(*request) logr.Logger {
	return func(in *request) logr.Logger {
		if in == nil {
			return log
		}
		log := log.WithValues("cluster", (*in).Cluster())
		if req, ok := any(in).(*mcreconcile.Request); ok {
			log = log.WithValues(
				objectKey, klog.KRef(req.Namespace, req.Name),
				"namespace", req.Namespace, "name", req.Name,
			)
		}
		return log
	}
}
