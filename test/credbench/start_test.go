// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package credbench

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// start is how a fleet's first requests went.
type start struct {
	wall, cpu  time.Duration
	runs, peak int
}

// medianStart is the median of three cold starts, and the peak of one more:
// counting processes costs time itself. The forms take turns.
func medianStart(t testing.TB, identity func(n int) string) (ours, theirs start) {
	t.Helper()
	forms := []func(*credentials.Access) *rest.Config{(*credentials.Access).RESTConfig, (*credentials.Access).PortableRESTConfig}
	results := make([]start, len(forms))
	rounds := make([][]start, len(forms))
	for range 3 {
		for i, form := range forms {
			rounds[i] = append(rounds[i], coldStart(t, identity, form))
		}
	}
	for i, form := range forms {
		slices.SortFunc(rounds[i], func(a, b start) int { return cmp.Compare(a.cpu, b.cpu) })
		results[i] = rounds[i][1]
		peak := peakChildren()
		coldStart(t, identity, form)
		results[i].peak = peak()
	}
	return results[0], results[1]
}

// coldStart lets all clusters of a new fleet send their first request at once.
func coldStart(t testing.TB, identity func(n int) string, form func(*credentials.Access) *rest.Config) start {
	t.Helper()
	f := newFleet(t, time.Hour)
	defer f.resolver.Close()
	clients := make([]*client, *clusters)
	for n := range clients {
		clients[n] = newClient(t, form(f.access(n, identity(n))))
	}
	before, began := cpu(t), time.Now()
	sendAll(t, clients)
	return start{wall: time.Since(began), cpu: cpu(t) - before, runs: f.runs()}
}

func sharedIdentity(t testing.TB) []row {
	shared := func(int) string { return "shared" }
	ours, theirs := medianStart(t, shared)
	name := fmt.Sprintf("%d clusters, one identity: ", *clusters)
	return []row{
		{name + "runs", fmt.Sprint(ours.runs), fmt.Sprint(theirs.runs), "1", ours.runs == 1},
		{name + "first requests done after", ms(ours.wall), ms(theirs.wall), "", false},
	}
}

func manyIdentities(t testing.TB) []row {
	own := func(n int) string { return fmt.Sprintf("i%d", n) }
	ours, theirs := medianStart(t, own)
	name := fmt.Sprintf("%d clusters, as many identities: ", *clusters)
	return []row{
		{name + "runs", fmt.Sprint(ours.runs), fmt.Sprint(theirs.runs), fmt.Sprint(*clusters), ours.runs == *clusters},
		{name + "processes at once", fmt.Sprint(ours.peak), fmt.Sprint(theirs.peak), "≤ 8", ours.peak <= 8},
		{name + "first requests done after", ms(ours.wall), ms(theirs.wall), "", false},
		{name + "CPU", ms(ours.cpu), ms(theirs.cpu), "", false},
	}
}

// expiringTogether has all credentials expire at the same instant, a minute
// from now, while requests go on.
func expiringTogether(t testing.TB) []row {
	const life, pause = time.Minute, 500 * time.Millisecond
	f := newFleet(t, life)
	defer f.resolver.Close()
	began := time.Now()
	clients := make([]*client, *clusters)
	for n := range clients {
		clients[n] = newClient(t, f.access(n, fmt.Sprintf("i%d", n)).RESTConfig())
	}
	sendAll(t, clients)

	peak := peakChildren()
	var longest time.Duration
	for time.Since(began) < life+5*time.Second {
		next := time.Now().Add(pause)
		for _, c := range clients {
			sent := time.Now()
			check(t, c.send())
			longest = max(longest, time.Since(sent))
		}
		time.Sleep(time.Until(next))
	}
	most := peak()
	name := fmt.Sprintf("%d credentials expiring at one instant: ", *clusters)
	return []row{
		{name + "runs", fmt.Sprint(f.runs()), "", fmt.Sprint(2 * *clusters), f.runs() == 2**clusters},
		{name + "processes at once", fmt.Sprint(most), "", "≤ 8", most <= 8},
		// A run takes longer than that; what is left is the machine's scheduler.
		{name + "longest wait of a request", ms(longest), "", "no run waited for", longest < 50*time.Millisecond},
	}
}

func ms(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.2f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
}
