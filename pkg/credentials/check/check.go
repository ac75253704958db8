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

	// Parallelism is how many profiles All checks at the same time. Checks that have
	// taken half a second already do not count: they wait for a plugin or a server.
	// Default: 32.
	Parallelism int

	// Rules are the permissions that the user needs. Default: none, and the step
	// Permissions is skipped.
	Rules []rbacv1.PolicyRule

	// Namespaces are those in which the rules are needed. Default: in all, and for
	// objects without a namespace, as in a ClusterRole.
	Namespaces []string
}

const (
	// DefaultTimeout is the default of Options.Timeout.
	DefaultTimeout = 15 * time.Second

	// DefaultParallelism is the default of Options.Parallelism.
	DefaultParallelism = 32

	// slotTime is how long a check counts for Parallelism.
	slotTime = 500 * time.Millisecond
)

func (o Options) complete() Options {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Parallelism <= 0 {
		o.Parallelism = DefaultParallelism
	}
	return o
}

// ConcurrentRuns returns the credentials.Options.MaxConcurrentRuns with which no check
// waits for the plugin of another one, even if all hang. With the default of package
// credentials, a few plugins that hang would take all slots of their provider, and the
// others could not be told from them.
func ConcurrentRuns(options Options) int {
	options = options.complete()
	atOnce := options.Parallelism * (int(options.Timeout/slotTime) + 1)
	return (atOnce*4 + 2) / 3 // three quarters of the slots are for first runs
}

// Profile checks a profile.
func Profile(ctx context.Context, profile *inventory.Profile, options Options) Report {
	c := &checker{options: options.complete()}
	defer c.release()
	return c.profile(ctx, c.options.Timeout, profile)
}

// All checks the profiles and returns their reports in the same order. The function,
// if it is not nil, gets each report when it is complete; it is called by the
// goroutine of the caller. When the context ends, the reports of profiles whose check
// has not ended have the cause Canceled.
//
// All ends within the time limit of one profile, unless it takes more than a third of
// that to start all checks: a check that starts later has less time, but two thirds of
// the limit at least.
func All(ctx context.Context, profiles []*inventory.Profile, options Options, progress func(Report)) []Report {
	c := &checker{options: options.complete()}
	// At the end: profiles with the same plugin run share its credential.
	defer c.release()

	end := time.Now().Add(c.options.Timeout)
	reports := make([]Report, len(profiles))
	slots, ended := make(chan struct{}, c.options.Parallelism), make(chan int)
	go func() {
		for i := range profiles {
			slots <- struct{}{}
			go func() {
				free := time.AfterFunc(slotTime, func() { <-slots })
				limit := max(time.Until(end), c.options.Timeout*2/3)
				reports[i] = c.profile(ctx, limit, profiles[i])
				if free.Stop() {
					<-slots
				}
				ended <- i
			}()
		}
	}()
	for range profiles {
		i := <-ended
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
func (c *checker) profile(parent context.Context, limit time.Duration, profile *inventory.Profile) Report {
	start := time.Now()
	ctx, cancel := context.WithTimeout(parent, limit)
	defer cancel()
	run := &run{checker: c, ctx: ctx, parent: parent, limit: limit.Round(time.Millisecond), report: newReport(inventory.KeyOf(profile).String())}
	run.steps(profile)
	r := run.report
	r.OK = r.Failure() == nil
	r.Duration = metav1.Duration{Duration: time.Since(start).Round(time.Millisecond)}
	return *r
}

// run is the check of one profile.
type run struct {
	*checker
	ctx    context.Context // ends at the limit, with the check
	parent context.Context // the caller's
	limit  time.Duration
	report *Report
}

func (r *run) steps(profile *inventory.Profile) {
	start := time.Now()
	access, err := r.options.Method.Resolve(r.ctx, profile)
	if err != nil {
		r.report.set(StepProvider, r.accessFailure(err).since(start))
		r.report.skipFrom(StepPlugin, "no access to the cluster")
		return
	}
	r.keep(access)
	defer access.CloseIdleConnections()
	r.report.Provider, r.report.Server = access.Provider(), access.Server()
	r.report.set(StepProvider, providerFound(access).since(start))

	var server probeResult
	var probing sync.WaitGroup
	probing.Go(func() { server = probe(r.ctx, access, r.limit) })
	hasCredential := r.credential(access)
	probing.Wait()
	if r.parent.Err() != nil {
		server.server = canceled(server.server)
	}
	r.report.set(StepServer, server.server)
	r.report.set(StepTLS, server.tls)

	switch {
	case !hasCredential:
		r.report.skipFrom(StepIdentity, "no credential")
		return
	case server.server.status == Failed || server.tls.status == Failed:
		r.report.skipFrom(StepIdentity, "the server cannot be used")
		return
	}
	client, err := newClient(access)
	if err != nil {
		r.report.set(StepIdentity, failed(NoAccess, err.Error()))
		r.report.skipFrom(StepPermissions, "no identity")
		return
	}
	if !r.identity(client) {
		r.report.skipFrom(StepPermissions, "no identity")
		return
	}
	r.permissions(client)
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
