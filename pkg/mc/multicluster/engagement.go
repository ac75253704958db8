// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"slices"
	"sync"
)

// Engagement is what a provider and the components that a cluster is engaged
// with share for as long as the cluster is engaged. A provider makes one for
// each cluster that it engages. It travels in the context that Engage gets, so
// an Aware, a cluster or a provider that wraps another one forwards it by
// passing that context on.
//
// All methods may be called from any goroutine. None of them holds a lock while
// it calls a function of others.
type Engagement struct {
	limiter StartLimiter

	mu         sync.Mutex // guards what follows
	unhealthy  bool
	components []*joined
	observers  []*observer
	working    int           // calls of BeginWork without their end
	idle       chan struct{} // closed when working is 0; nil if it is not awaited
}

// Component takes part in the engagement of one cluster, as a controller does.
// The methods may be called from any goroutine.
type Component interface {
	// SetClusterHealthy reports whether the cluster answers. A component takes
	// its cluster for healthy until the first call. The calls come one at a
	// time. Several changes may come as one call, with the last state.
	SetClusterHealthy(healthy bool)

	// ClusterBacklog returns the number of requests queued for the cluster. It
	// returns at once.
	ClusterBacklog() int
}

// StartLimiter bounds how many sources of events start at a time, over many
// clusters: a start lists all objects of a kind.
type StartLimiter interface {
	// RequestStart requests the start of one source in the cluster. It returns
	// at once and calls nothing back: controllers hold a lock during the call.
	RequestStart() StartRequest
}

// StartRequest is the request to start one source of events in a cluster.
type StartRequest interface {
	// Wait returns when the source may start. The error is the cause of the
	// context's end, or says why the source cannot start now: then its start is
	// requested again later. After Release, Wait returns at once.
	Wait(ctx context.Context) error

	// Release lets others start. It is called when the source has synced,
	// failed, stopped, or is known to be kept from syncing, and also after Wait
	// has failed. It may come before, instead of or after Wait, and more than
	// once. The limiter is free to let others start before.
	Release()
}

// NewEngagement returns the engagement of a healthy cluster. The limiter bounds
// the starts of sources in it; nil means no limit.
func NewEngagement(limiter StartLimiter) *Engagement {
	return &Engagement{limiter: limiter}
}

type engagementKey struct{}

// WithEngagement returns a context that carries the engagement, for Engage.
func WithEngagement(ctx context.Context, e *Engagement) context.Context {
	return context.WithValue(ctx, engagementKey{}, e)
}

// EngagementFrom returns the engagement that the context carries. It never
// returns nil: if there is none, because the provider makes none, the result is
// a new one, whose cluster stays healthy and whose starts have no limit.
func EngagementFrom(ctx context.Context) *Engagement {
	if e, ok := ctx.Value(engagementKey{}).(*Engagement); ok && e != nil {
		return e
	}
	return NewEngagement(nil)
}

// joined is a component of an engagement. The engagement's lock guards healthy
// and calling.
type joined struct {
	Component
	ctx     context.Context // the component's own: it is called until this ends
	healthy bool            // as of the last call
	calling bool            // SetClusterHealthy is running
}

// observer is a function to be called after changes.
type observer struct {
	changed func()
	ctx     context.Context // the observer's own: it is called until this ends
}

// SetHealthy sets whether the cluster answers. All components get that, also
// those that join later. When it returns, they have the latest state, except
// one whose call with an earlier state is still running: it gets the latest
// state next.
func (e *Engagement) SetHealthy(healthy bool) {
	e.mu.Lock()
	e.unhealthy = !healthy
	components := slices.Clone(e.components)
	e.mu.Unlock()
	for _, j := range components {
		e.update(j)
	}
}

// update calls the component until it has the latest state, unless another
// goroutine does so already: no call may overtake another.
func (e *Engagement) update(j *joined) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if j.calling {
		return
	}
	j.calling = true
	defer func() { j.calling = false }()
	for j.healthy == e.unhealthy && j.ctx.Err() == nil {
		j.healthy = !e.unhealthy
		e.callLocked(j, j.healthy)
	}
}

// callLocked calls the component without the lock.
func (e *Engagement) callLocked(j *joined, healthy bool) {
	e.mu.Unlock()
	defer e.mu.Lock() // also after a panic
	j.SetClusterHealthy(healthy)
}

// Backlog returns the number of requests that all components have queued for
// the cluster.
func (e *Engagement) Backlog() int {
	e.mu.Lock()
	components := slices.Clone(e.components)
	e.mu.Unlock()
	total := 0
	for _, j := range components {
		if j.ctx.Err() == nil {
			total += j.ClusterBacklog()
		}
	}
	return total
}

// BeginWork notes that a component works with the cluster, as a controller does
// while it reconciles, until the returned function is called, once. The component
// checks afterwards that its engagement has not ended. A provider that disengages
// the cluster can wait for the end of the work: see Idle.
func (e *Engagement) BeginWork() (end func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.working++
	return e.endWork
}

func (e *Engagement) endWork() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.working--
	if e.working == 0 && e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
}

// Idle returns a channel that is closed when no component works with the cluster. It
// is for a provider that has ended the context of the engagement.
func (e *Engagement) Idle() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.idle != nil {
		return e.idle
	}
	idle := make(chan struct{})
	if e.working == 0 {
		close(idle)
		return idle
	}
	e.idle = idle
	return idle
}

// NotifyChange calls the functions added with OnChange. A provider calls it when
// the data about the cluster has changed, such as the labels of its profile,
// while the cluster stays engaged.
func (e *Engagement) NotifyChange() {
	e.mu.Lock()
	observers := slices.Clone(e.observers)
	e.mu.Unlock()
	for _, o := range observers {
		if o.ctx.Err() == nil {
			o.changed()
		}
	}
}

// Join adds a component until the context ends. If the cluster is unhealthy, the
// component gets that before Join returns.
func (e *Engagement) Join(ctx context.Context, c Component) {
	j := &joined{Component: c, ctx: ctx, healthy: true}
	add(ctx, e, &e.components, j)
	e.update(j)
}

// OnChange calls the function after each change until the context ends. The
// function must return at once.
func (e *Engagement) OnChange(ctx context.Context, changed func()) {
	add(ctx, e, &e.observers, &observer{changed: changed, ctx: ctx})
}

// add adds to one of the engagement's lists until the context ends.
func add[T comparable](ctx context.Context, e *Engagement, list *[]T, one T) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*list = append(*list, one)
	context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		*list = slices.DeleteFunc(*list, func(other T) bool { return other == one })
	})
}

// RequestStart requests the start of one source of events in the cluster. It
// returns at once, and never nil.
func (e *Engagement) RequestStart() StartRequest {
	if e.limiter != nil {
		if r := e.limiter.RequestStart(); r != nil {
			return r
		}
	}
	return unlimited{}
}

// unlimited is the StartRequest where there is no limit.
type unlimited struct{}

func (unlimited) Wait(ctx context.Context) error { return context.Cause(ctx) }
func (unlimited) Release()                       {}
