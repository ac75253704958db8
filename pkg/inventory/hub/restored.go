// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// timeoutTolerance is how long before its timeout a watch may end by itself.
const timeoutTolerance = 5 * time.Second

// restoreCheck recognizes that a hub was restored from a backup: its resource version
// is earlier than that of the cache. A watch would get no events before the hub has
// passed the cache's resource version, and what was lost would stay in the cache.
// It is used from one goroutine at a time.
type restoreCheck struct {
	list cache.ListWithContextFunc

	started time.Time // the last watch, zero if there was none
	timeout time.Duration
}

// before is called before each watch. It asks for the hub's resource version if the
// last watch ended too early. The error is that the objects must be listed again, or
// that of the request.
func (c *restoreCheck) before(ctx context.Context, options metav1.ListOptions) error {
	cut := !c.started.IsZero() && (c.timeout == 0 || time.Since(c.started) < c.timeout-timeoutTolerance)
	if cut && options.ResourceVersion != "" && options.ResourceVersion != "0" {
		list, err := c.list(ctx, metav1.ListOptions{Limit: 1, LabelSelector: options.LabelSelector, FieldSelector: options.FieldSelector})
		if err != nil {
			return err
		}
		current, err := meta.ListAccessor(list)
		if err != nil {
			return err
		}
		order, err := resourceversion.CompareResourceVersion(current.GetResourceVersion(), options.ResourceVersion)
		if err == nil && order < 0 {
			return apierrors.NewResourceExpired("the hub has an earlier resource version than the cache, it has been restored")
		}
	}
	c.started, c.timeout = time.Now(), 0
	if options.TimeoutSeconds != nil {
		c.timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	return nil
}
