// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// configForm is one of the two forms of config that an Access has.
type configForm = func(*credentials.Access) *rest.Config

var (
	managedForm  configForm = (*credentials.Access).RESTConfig
	portableForm configForm = (*credentials.Access).PortableRESTConfig
)

// firstRequests is how the first requests to all clusters went.
type firstRequests struct {
	wall, cpu  time.Duration
	runs, peak int
}

// medianFirstRequests returns the median by CPU of three rounds, and the peak of
// one more: to count processes costs time itself.
func medianFirstRequests(tb testing.TB, identity func(n int) string) (other, rollcall firstRequests) {
	tb.Helper()
	forms := []configForm{portableForm, managedForm}
	results := make([]firstRequests, len(forms))
	rounds := make([][]firstRequests, len(forms))
	for range 3 {
		for i, form := range forms {
			rounds[i] = append(rounds[i], sendFirstRequests(tb, identity, form))
		}
	}
	for i, form := range forms {
		slices.SortFunc(rounds[i], func(a, b firstRequests) int { return cmp.Compare(a.cpu, b.cpu) })
		results[i] = rounds[i][1]
		peak := peakChildren()
		sendFirstRequests(tb, identity, form)
		results[i].peak = peak()
	}
	return results[0], results[1]
}

// sendFirstRequests sends the first request to all clusters at once.
func sendFirstRequests(tb testing.TB, identity func(n int) string, form configForm) firstRequests {
	tb.Helper()
	r := newResolving(tb, time.Hour)
	defer r.resolver.Close()
	senders := make([]*sender, *credentialClusters)
	for n := range senders {
		senders[n] = newSender(tb, form(r.access(n, identity(n))))
	}
	before, began := cpuTimeOfAll(), time.Now()
	sendAll(tb, senders)
	return firstRequests{wall: time.Since(began), cpu: cpuTimeOfAll() - before, runs: r.runs()}
}

func sharedIdentity(tb testing.TB) []row {
	other, ours := medianFirstRequests(tb, func(int) string { return "shared" })
	name := fmt.Sprintf("%d clusters, one identity: ", *credentialClusters)
	return []row{
		pair(name+"runs", integer, alone, exactly(1), float64(other.runs), float64(ours.runs)),
		pair(name+"first requests done after", shortTime, quotient, nil, other.wall.Seconds(), ours.wall.Seconds()),
	}
}

func ownIdentity(n int) string { return fmt.Sprintf("i%d", n) }

func manyIdentities(tb testing.TB) []row {
	other, ours := medianFirstRequests(tb, ownIdentity)
	name := fmt.Sprintf("%d clusters, as many identities: ", *credentialClusters)
	return []row{
		pair(name+"runs", integer, alone, exactly(float64(*credentialClusters)), float64(other.runs), float64(ours.runs)),
		pair(name+"processes at once", integer, alone, atMost(8), float64(other.peak), float64(ours.peak)),
		pair(name+"first requests done after", shortTime, quotient, nil, other.wall.Seconds(), ours.wall.Seconds()),
		pair(name+"CPU", shortTime, quotient, nil, other.cpu.Seconds(), ours.cpu.Seconds()),
	}
}

// simultaneousExpiry lets all credentials expire at the same instant, a minute
// from now, while requests go on.
func simultaneousExpiry(tb testing.TB) []row {
	const life, pause = time.Minute, 500 * time.Millisecond
	r := newResolving(tb, life)
	defer r.resolver.Close()
	began := time.Now()
	senders := make([]*sender, *credentialClusters)
	for n := range senders {
		senders[n] = newSender(tb, managedForm(r.access(n, ownIdentity(n))))
	}
	sendAll(tb, senders)

	peak := peakChildren()
	var longest time.Duration
	for time.Since(began) < life+5*time.Second {
		next := time.Now().Add(pause)
		for _, c := range senders {
			sent := time.Now()
			check(tb, c.send())
			longest = max(longest, time.Since(sent))
		}
		time.Sleep(time.Until(next))
	}
	highest := peak()
	name := fmt.Sprintf("%d credentials expiring at one instant: ", *credentialClusters)
	return []row{
		single(name+"runs", integer, exactly(float64(2**credentialClusters)), float64(r.runs())),
		single(name+"processes at once", integer, atMost(8), float64(highest)),
		// A request that waits for a run takes longer; up to this it is the
		// machine's scheduler.
		single(name+"longest wait of a request", shortTime, atMost(0.05), longest.Seconds()),
	}
}
