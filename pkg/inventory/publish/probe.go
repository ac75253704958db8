// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	// maxStarts bounds how many probes are in their first startTime, in which
	// connections are made. A probe that takes longer keeps no other one waiting.
	maxStarts = 32
	startTime = time.Second

	// returnTime is how long a probe may take to return when its context ends.
	returnTime = time.Second

	// maxMessage is the longest published message of a probe, in bytes.
	maxMessage = 1024
)

// Reasons of the condition ControlPlaneHealthy with the status Unknown.
const (
	// ReasonProbeFailed means that the cluster could not be probed.
	ReasonProbeFailed = "ProbeFailed"

	// ReasonProbeTimedOut means that the probe has not returned in time.
	ReasonProbeTimedOut = "ProbeTimedOut"
)

// reasonForm is what the API accepts as the reason of a condition.
var reasonForm = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?$`)

// prober runs probes.
type prober struct {
	probe   ProbeFunc
	timeout time.Duration
	starts  chan struct{}
	running sync.WaitGroup
}

func newProber(o *Options) *prober {
	return &prober{probe: o.Probe, timeout: o.ProbeTimeout, starts: make(chan struct{}, maxStarts)}
}

// start probes a cluster. result receives the outcome, unless the context ends
// first. Then, when the probe has returned, ended is closed.
func (p *prober) start(ctx context.Context, profile *inventory.Profile) (result <-chan observation, ended <-chan struct{}) {
	results, done := make(chan observation, 1), make(chan struct{})
	p.running.Go(func() {
		defer close(done)
		select {
		case p.starts <- struct{}{}:
		case <-ctx.Done():
			return
		}
		started := sync.OnceFunc(func() { <-p.starts })
		defer started()
		timer := time.AfterFunc(startTime, started)
		defer timer.Stop()

		probeCtx, cancel := context.WithTimeout(ctx, p.timeout)
		defer cancel()
		// A probe that ignores its context must not delay the result.
		var report sync.Once
		overdue := time.AfterFunc(p.timeout+returnTime, func() {
			report.Do(func() {
				results <- observation{ProbeResult{
					Status: metav1.ConditionUnknown, Reason: ReasonProbeTimedOut,
					Message: fmt.Sprintf("the probe has not returned within %s", p.timeout),
				}, time.Now()}
			})
		})
		defer overdue.Stop()
		observed, err := p.probe(probeCtx, profile)
		if ctx.Err() != nil {
			return
		}
		report.Do(func() { results <- observation{checked(observed, err), time.Now()} })
	})
	return results, done
}

// checked returns a result that can be published.
func checked(r ProbeResult, err error) ProbeResult {
	switch {
	case err != nil:
		r = ProbeResult{Status: metav1.ConditionUnknown, Reason: ReasonProbeFailed, Message: err.Error()}
	case !reasonForm.MatchString(r.Reason):
		r = ProbeResult{Status: metav1.ConditionUnknown, Reason: ReasonProbeFailed, Message: fmt.Sprintf("the probe has returned the invalid reason %q", r.Reason)}
	case r.Status != metav1.ConditionTrue && r.Status != metav1.ConditionFalse && r.Status != metav1.ConditionUnknown:
		r = ProbeResult{Status: metav1.ConditionUnknown, Reason: ReasonProbeFailed, Message: fmt.Sprintf("the probe has returned the invalid status %q", r.Status)}
	}
	if len(r.Message) > maxMessage {
		r.Message = strings.ToValidUTF8(r.Message[:maxMessage], "")
	}
	// What a cluster claims must not make its profile invalid.
	if len(validation.IsDNS1123Subdomain(r.ClusterID)) > 0 || len(r.ClusterID) > maxClusterID {
		r.ClusterID = ""
	}
	if len(r.KubernetesVersion) > maxVersion || !isVersion(r.KubernetesVersion) {
		r.KubernetesVersion = ""
	}
	return r
}

const (
	maxClusterID = 128 // KEP-2149
	maxVersion   = 63
)

func isVersion(text string) bool {
	profile := &inventory.Profile{}
	profile.Status.Version.Kubernetes = text
	_, err := inventory.KubernetesVersion(profile)
	return err == nil
}
