// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/retry"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/sources"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// startSource starts the source until that succeeds. It returns false if the
// engagement ends before. The source runs until the engagement ends. The start was
// requested when the cluster was engaged; each retry requests another one.
func (c *mcController[request]) startSource(src mcsource.TypedSource[client.Object, request], q *engagedQueue[request], start multicluster.StartRequest) bool {
	e, backoff := q.engagement, retry.Backoff(time.Second, time.Minute)
	for {
		err := c.tryStartSource(src, q, start)
		if err == nil {
			return true
		}
		if e.ctx.Err() != nil {
			return false
		}
		c.sourceFailed(q, err)
		delay := backoff.Step()
		c.GetLogger().Error(err, "Failed to start source, requests of this cluster wait", "cluster", e.name,
			"source", fmt.Sprint(src), "retryAfter", delay.Round(time.Millisecond).String())
		select {
		case <-e.ctx.Done():
			return false
		case <-time.After(delay):
		}
		start = nil
	}
}

func (c *mcController[request]) tryStartSource(src mcsource.TypedSource[client.Object, request], q *engagedQueue[request], start multicluster.StartRequest) (err error) {
	e := q.engagement
	if start != nil {
		defer start.Release()
	}
	forCluster, watched, err := src.ForCluster(e.name, e.cluster)
	if err != nil || !watched {
		return err
	}
	if start == nil { // only now, since it may wait for a slot and probe the cluster
		start = e.shared.RequestStart()
		defer start.Release()
	}
	if err := start.Wait(e.ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(e.ctx)
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	c.GetLogger().V(1).Info("Starting EventSource", "cluster", e.name, "source", fmt.Sprint(forCluster))
	late := fmt.Errorf("not started within %v", c.syncTimeout)
	limit := time.AfterFunc(c.syncTimeout, func() {
		if ctx.Err() == nil {
			c.sourceStuck(forCluster, q, start, late)
			cancel()
		}
	})
	err = forCluster.Start(ctx, q)
	if !limit.Stop() {
		return late
	}
	if err != nil {
		return err
	}
	syncingSource, ok := forCluster.(source.TypedSyncingSource[request])
	if !ok {
		return nil
	}
	syncCtx, cancelSync := context.WithTimeout(ctx, c.syncTimeout)
	defer cancelSync()
	reason := c.diagnose(syncCtx, forCluster, q, start)
	if err := syncingSource.WaitForSync(syncCtx); err != nil {
		if why := reason.Load(); why != nil {
			return fmt.Errorf("%w: %w", err, *why)
		}
		return err
	}
	return ctx.Err()
}

// diagnose finds out why the source has not synced, until the context ends, if
// the source is a DiagnosedSource. The result holds the latest reason.
func (c *mcController[request]) diagnose(ctx context.Context, src source.TypedSource[request], q *engagedQueue[request], start multicluster.StartRequest) *atomic.Pointer[error] {
	reason := &atomic.Pointer[error]{}
	diagnosed, ok := src.(sources.Diagnosed)
	if !ok {
		return reason
	}
	c.running.Go(func() {
		diagnosed.Diagnose(ctx, func(err error) {
			if ctx.Err() == nil {
				reason.Store(&err)
				c.sourceStuck(src, q, start, err)
			}
		})
	})
	return reason
}

// sourceStuck records why the source has not synced, and lets others start.
func (c *mcController[request]) sourceStuck(src source.TypedSource[request], q *engagedQueue[request], start multicluster.StartRequest, reason error) {
	start.Release()
	if c.sourceFailed(q, reason) {
		c.GetLogger().Info("Cannot watch a kind in this cluster yet, the controller's requests for the cluster wait",
			"cluster", q.engagement.name, "source", fmt.Sprint(src), "reason", reason.Error())
	}
}
