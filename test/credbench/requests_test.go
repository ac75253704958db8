// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credbench

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// requestPath compares the cost of a request with that of one to which nothing
// is added but the header.
func requestPath(t testing.TB) []row {
	f := newFleet(t, time.Hour)
	defer f.resolver.Close()
	access := f.access(0, "i0")
	type cost struct {
		time        time.Duration
		allocations float64
	}
	// A benchmark of package testing must not run within another.
	measure := func(c *client) cost {
		check(t, c.send())
		const times = 200_000
		began := time.Now()
		for range times {
			check(t, c.send())
		}
		took := time.Since(began) / times
		return cost{took, testing.AllocsPerRun(1000, func() { check(t, c.send()) })}
	}
	ours := newClient(t, access.RESTConfig())
	least := measure(&client{transport: &headerOnly{base: answering{}}, request: ours.request})
	managed, portable := measure(ours), measure(newClient(t, access.PortableRESTConfig()))
	text := func(c cost) string {
		return fmt.Sprintf("%d ns, %.0f allocations", c.time.Nanoseconds(), c.allocations)
	}
	return []row{{
		"a request", text(managed), text(portable), "the header's allocations: " + text(least),
		managed.allocations <= least.allocations,
	}}
}

// headerOnly does what no RoundTripper can do without.
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

// churn lets ten profiles for each cluster come and go.
func churn(t testing.TB) []row {
	profiles := 10 * *clusters
	left := func(form func(*credentials.Access) *rest.Config, allocator string) string {
		f := newFleet(t, time.Hour)
		defer f.resolver.Close()
		rate := runtime.MemProfileRate
		runtime.MemProfileRate = 1
		for n := range profiles {
			access := f.access(n, fmt.Sprintf("i%d", n))
			newClient(t, form(access))
			access.Release()
		}
		runtime.MemProfileRate = rate
		return fmt.Sprint(alive(t, allocator))
	}
	ours := left((*credentials.Access).RESTConfig, "authn.(*Pool).Acquire")
	theirs := left((*credentials.Access).PortableRESTConfig, "exec.newAuthenticator")
	return []row{{fmt.Sprintf("%d profiles come and gone: authenticators left", profiles), ours, theirs, "0", ours == "0"}}
}

// alive returns how many objects there are of the largest kind that the
// function makes.
func alive(t testing.TB, function string) (n int64) {
	t.Helper()
	for range 3 {
		runtime.GC() // profiles lag behind by up to two collections
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

// allocator returns the function that has asked for the memory.
func allocator(record *runtime.MemProfileRecord) string {
	frames := runtime.CallersFrames(record.Stack())
	for {
		frame, more := frames.Next()
		if !more || !strings.HasPrefix(frame.Function, "runtime.") {
			return frame.Function
		}
	}
}
