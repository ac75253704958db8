// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package requestlog creates the loggers of reconciles.
package requestlog

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func withObject(log logr.Logger, objectKey string, req reconcile.Request) logr.Logger {
	return log.WithValues(
		objectKey, klog.KRef(req.Namespace, req.Name),
		"namespace", req.Namespace, "name", req.Name,
	)
}

// Constructor returns a log constructor for a controller. Its loggers have the
// request's cluster and, if the request identifies an object, the keys of
// controller-runtime: namespace, name, and the object under objectKey, which is
// the kind if known.
func Constructor[request mcreconcile.ClusterAware[request]](log logr.Logger, objectKey string) func(*request) logr.Logger {
	return func(in *request) logr.Logger {
		if in == nil {
			return log
		}
		log := log.WithValues("cluster", (*in).Cluster())
		switch req := any(in).(type) {
		case *mcreconcile.Request:
			log = withObject(log, objectKey, req.Request)
		case *mcreconcile.WithCluster[reconcile.Request]:
			log = withObject(log, objectKey, req.Request)
		}
		return log
	}
}
