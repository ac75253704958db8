// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Options configure a check.
type Options struct {
	// Method connects to the clusters, as in the controller. Required.
	Method credentials.Method

	// Timeout is the time limit of each profile. Default: 15 s.
	Timeout time.Duration

	// Parallelism is how many profiles All checks at the same time. Default: 256.
	Parallelism int

	// Rules are the permissions that the user needs. Default: none, and the step
	// Permissions is skipped.
	Rules []rbacv1.PolicyRule

	// Namespaces are those in which the rules are needed. Default: in all, and for
	// objects without a namespace, as in a ClusterRole.
	Namespaces []string
}

const (
	defaultTimeout = 15 * time.Second

	// DefaultParallelism is the default of Options.Parallelism.
	DefaultParallelism = 256
)

func (o Options) complete() Options {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Parallelism <= 0 {
		o.Parallelism = DefaultParallelism
	}
	return o
}

// ConcurrentRuns returns the credentials.Options.MaxConcurrentRuns for a Resolver with
// which this many profiles are checked at the same time, 0 for DefaultParallelism. With
// the default of package credentials, a few plugins that hang would take all slots of
// their provider, and the others could not be told from them.
func ConcurrentRuns(parallelism int) int {
	if parallelism <= 0 {
		parallelism = DefaultParallelism
	}
	return (parallelism*4 + 2) / 3 // three quarters of the slots are for first runs
}

// Profile checks a profile.
func Profile(ctx context.Context, profile *inventory.Profile, options Options) Report {
	c := &checker{options: options.complete()}
	defer c.release()
	return c.profile(ctx, profile)
}

// All checks the profiles and returns their reports in the same order. The function,
// if it is not nil, gets each report when it is complete; it is called by the
// goroutine of the caller. When the context ends, the reports of profiles whose check
// has not ended have the cause Canceled.
func All(ctx context.Context, profiles []*inventory.Profile, options Options, progress func(Report)) []Report {
	c := &checker{options: options.complete()}
	// At the end: profiles with the same plugin run share its credential.
	defer c.release()

	reports := make([]Report, len(profiles))
	next, ended := make(chan int), make(chan int)
	var workers sync.WaitGroup
	for range min(c.options.Parallelism, len(profiles)) {
		workers.Go(func() {
			for i := range next {
				reports[i] = c.profile(ctx, profiles[i])
				ended <- i
			}
		})
	}
	go func() {
		for i := range profiles {
			next <- i
		}
		close(next)
		workers.Wait()
		close(ended)
	}()
	for i := range ended {
		if progress != nil {
			progress(reports[i])
		}
	}
	return reports
}

// checker checks profiles with the same options.
type checker struct {
	options  Options
	versions versions

	mu       sync.Mutex // guards what follows
	accesses []*credentials.Access
}

// release ends the use of all Accesses.
func (c *checker) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, access := range c.accesses {
		access.Release()
	}
	c.accesses = nil
}

func (c *checker) keep(access *credentials.Access) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accesses = append(c.accesses, access)
}

// profile checks a profile. Its Access is released at the end of the checker.
func (c *checker) profile(parent context.Context, profile *inventory.Profile) Report {
	start := time.Now()
	ctx, cancel := context.WithTimeout(parent, c.options.Timeout)
	defer cancel()
	r := newReport(inventory.KeyOf(profile).String())
	c.steps(ctx, parent, r, profile)
	r.OK = r.Failure() == nil
	r.Duration = metav1.Duration{Duration: time.Since(start).Round(time.Millisecond)}
	return *r
}

func (c *checker) steps(ctx, parent context.Context, r *Report, profile *inventory.Profile) {
	start := time.Now()
	access, err := c.options.Method.Resolve(ctx, profile)
	if err != nil {
		r.set(StepProvider, c.accessFailure(parent, err).since(start))
		r.skipFrom(StepPlugin, "no access to the cluster")
		return
	}
	c.keep(access)
	defer access.CloseIdleConnections()
	r.Provider, r.Server = access.Provider(), access.Server()
	r.set(StepProvider, providerFound(access).since(start))

	var server probeResult
	var probing sync.WaitGroup
	probing.Go(func() { server = probe(ctx, access, c.options.Timeout) })
	hasCredential := c.credential(ctx, parent, r, access)
	probing.Wait()
	if parent.Err() != nil {
		server.server = canceled(server.server)
	}
	r.set(StepServer, server.server)
	r.set(StepTLS, server.tls)

	switch {
	case !hasCredential:
		r.skipFrom(StepIdentity, "no credential")
		return
	case server.server.status == Failed || server.tls.status == Failed:
		r.skipFrom(StepIdentity, "the server cannot be used")
		return
	}
	client, err := newClient(access)
	if err != nil {
		r.set(StepIdentity, failed(NoAccess, err.Error()))
		r.skipFrom(StepPermissions, "no identity")
		return
	}
	if !c.identity(ctx, parent, r, client) {
		r.skipFrom(StepPermissions, "no identity")
		return
	}
	c.permissions(ctx, parent, r, client)
}

// skipFrom skips the steps from the given one on.
func (r *Report) skipFrom(first StepName, reason string) {
	found := false
	for _, name := range stepNames {
		if found = found || name == first; found {
			r.set(name, skipped(reason))
		}
	}
}

// canceled returns the outcome of a step that failed since the caller has ended the
// check.
func canceled(o outcome) outcome {
	if o.status == Failed {
		o.cause, o.message, o.remedy = Canceled, "the check was canceled", ""
	}
	return o
}
