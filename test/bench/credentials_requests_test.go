// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// requestCost compares the cost of a request with that of one to which nothing
// but the header is added.
func requestCost(tb testing.TB) []row {
	r := newResolving(tb, time.Hour)
	defer r.resolver.Close()
	access := r.access(0, "i0")
	type cost struct{ time, allocations float64 }
	// A benchmark of package testing must not run within another.
	measure := func(s *sender) cost {
		check(tb, s.send())
		const times = 200_000
		began := time.Now()
		for range times {
			check(tb, s.send())
		}
		took := time.Since(began).Seconds() / times
		return cost{took, testing.AllocsPerRun(1000, func() { check(tb, s.send()) })}
	}
	managed := newSender(tb, managedForm(access))
	least := measure(&sender{transport: &headerOnly{base: answering{}}, request: managed.request})
	ours, other := measure(managed), measure(newSender(tb, portableForm(access)))
	return []row{
		pair("a request", nanoseconds, quotient, nil, other.time, ours.time),
		single("  with only the header added", nanoseconds, nil, least.time),
		pair("a request: allocations", integer, alone, atMost(least.allocations), other.allocations, ours.allocations),
	}
}

// headerOnly does what every RoundTripper that adds a header must do.
type headerOnly struct{ base http.RoundTripper }

func (t *headerOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.WithContext(request.Context())
	request.Header = request.Header.Clone()
	if request.Header == nil {
		request.Header = http.Header{}
	}
	request.Header["Authorization"] = []string{"Bearer t1"}
	return t.base.RoundTrip(request)
}

// churn adds and removes ten profiles for each cluster.
func churn(tb testing.TB) []row {
	profiles := 10 * *credentialClusters
	left := func(form configForm, allocator string) float64 {
		r := newResolving(tb, time.Hour)
		defer r.resolver.Close()
		rate := runtime.MemProfileRate
		runtime.MemProfileRate = 1
		for n := range profiles {
			access := r.access(n, ownIdentity(n))
			newSender(tb, form(access))
			if n == 0 && alive(tb, allocator) == 0 {
				tb.Fatalf("nothing is allocated by %s: has it been renamed?", allocator)
			}
			access.Release()
		}
		runtime.MemProfileRate = rate
		return float64(alive(tb, allocator))
	}
	ours := left(managedForm, "authn.(*Pool).Acquire")
	other := left(portableForm, "exec.newAuthenticator")
	return []row{pair(fmt.Sprintf("%d profiles added and removed: authenticators left", profiles), integer, alone, exactly(0), other, ours)}
}

// alive counts the objects of the largest kind that a function allocates.
func alive(tb testing.TB, function string) (n int64) {
	tb.Helper()
	for range 3 {
		runtime.GC() // profiles are up to two collections old
	}
	records := make([]runtime.MemProfileRecord, 1000)
	for {
		count, ok := runtime.MemProfile(records, false)
		if ok {
			records = records[:count]
			break
		}
		records = make([]runtime.MemProfileRecord, 2*count)
	}
	var largest int64
	for i := range records {
		objects := records[i].InUseObjects()
		if objects == 0 || !strings.HasSuffix(allocator(&records[i]), function) {
			continue
		}
		if size := records[i].InUseBytes() / objects; size > largest {
			n, largest = objects, size
		}
	}
	return n
}

// allocator returns the function that has allocated the memory.
func allocator(record *runtime.MemProfileRecord) string {
	frames := runtime.CallersFrames(record.Stack())
	for {
		frame, more := frames.Next()
		if !more || !strings.HasPrefix(frame.Function, "runtime.") {
			return frame.Function
		}
	}
}
