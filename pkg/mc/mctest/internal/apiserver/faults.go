// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FaultKind is the way in which requests fail.
type FaultKind int

// The kinds of faults, which package mctest documents. Refuse and Freeze concern
// the whole server, the others the requests that match.
const (
	Hang FaultKind = iota
	Refuse
	Freeze
	Reset
	Unauthorized
	Forbidden
	Expired
	TooManyRequests
	Unavailable
	Slow
)

// Fault makes requests fail.
type Fault struct {
	Kind FaultKind
	// Duration is how long Slow waits, and how long TooManyRequests asks the
	// client to wait.
	Duration time.Duration
	// Verbs and Resources limit the fault; empty ones do not.
	Verbs     []string
	Resources []string
}

func (f *Fault) everything() bool { return len(f.Verbs) == 0 && len(f.Resources) == 0 }

func (f *Fault) matches(a attributes) bool {
	return (len(f.Verbs) == 0 || slices.Contains(f.Verbs, a.verb)) &&
		(len(f.Resources) == 0 || slices.ContainsFunc(f.Resources, a.names))
}

type activeFault struct {
	Fault
	lifted chan struct{}
}

// faults are those in force.
type faults struct {
	mu     sync.Mutex
	active []*activeFault // oldest first; guarded by mu
}

func (f *faults) add(fault Fault) *activeFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	active := &activeFault{Fault: fault, lifted: make(chan struct{})}
	f.active = append(f.active, active)
	return active
}

// remove lifts a fault, or all if it is nil.
func (f *faults) remove(fault *activeFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = slices.DeleteFunc(f.active, func(a *activeFault) bool {
		if fault != nil && a != fault {
			return false
		}
		close(a.lifted)
		return true
	})
}

// matching lists the faults that concern a request.
func (f *faults) matching(a attributes) []*activeFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*activeFault
	for _, fault := range f.active {
		if fault.matches(a) {
			out = append(out, fault)
		}
	}
	return out
}

// whole reports whether a fault of a kind is in force for the whole server. A
// reset may concern some requests only.
func (f *faults) whole(kind FaultKind) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.active, func(a *activeFault) bool { return a.Kind == kind && (kind != Reset || a.everything()) })
}

// find returns a fault of a kind that concerns a request, or nil.
func (f *faults) find(kind FaultKind, a attributes) *activeFault {
	for _, fault := range f.matching(a) {
		if fault.Kind == kind {
			return fault
		}
	}
	return nil
}

// Inject puts a fault in force until the returned function is called or all
// faults are lifted. It fails only if another fault is lifted at the same time,
// and the server's port cannot be reopened.
func (s *Server) Inject(fault Fault) (lift func() error, err error) {
	active := s.faults.add(fault)
	if err := s.applyFaults(); err != nil {
		return nil, err
	}
	if fault.Kind == Reset && fault.everything() {
		s.listener.Load().CloseConnections(true)
	}
	s.changed.signal()
	return func() error {
		s.faults.remove(active)
		s.changed.signal()
		return s.applyFaults()
	}, nil
}

// LiftAll lifts all faults. It fails if the server's port cannot be reopened.
func (s *Server) LiftAll() error {
	s.faults.remove(nil)
	s.changed.signal()
	return s.applyFaults()
}

// applyFaults applies the faults in force to the listener.
func (s *Server) applyFaults() error {
	s.listenerMu.Lock()
	defer s.listenerMu.Unlock()
	if s.ctx.Err() != nil {
		return nil
	}
	l := s.listener.Load()
	l.SetFrozen(s.faults.whole(Freeze))
	l.SetReset(s.faults.whole(Reset))
	if s.faults.whole(Refuse) {
		l.Close()
		l.CloseConnections(false)
		return nil
	}
	if l.Inner() != nil {
		return nil
	}
	if err := l.Open(); err != nil {
		return err
	}
	s.serve(l)
	return nil
}

// injectFaults lets a request fail if a fault matches. It reports whether the
// request continues.
func (s *Server) injectFaults(w http.ResponseWriter, r *http.Request, req *request) bool {
	for _, fault := range s.faults.matching(req.attributes) {
		switch fault.Kind {
		case Hang, Slow:
			var passed <-chan time.Time
			if fault.Kind == Slow {
				passed = time.After(fault.Duration)
			}
			select {
			case <-passed:
			case <-fault.lifted:
			case <-r.Context().Done():
				return false
			}
		case Reset:
			resetConnection(r)
			panic(http.ErrAbortHandler)
		default:
			if err := fault.failure(req); err != nil {
				writeError(w, err)
				return false
			}
		}
	}
	return true
}

// failure returns the error that a fault answers, or nil.
func (f *activeFault) failure(req *request) error {
	gr := schema.GroupResource{Group: req.resource.Group, Resource: req.resource.Resource}
	switch f.Kind {
	case Unauthorized:
		return apierrors.NewUnauthorized("Unauthorized")
	case Forbidden:
		return apierrors.NewForbidden(gr, req.name, fmt.Errorf("user may not %s %s", req.verb, req.attributes.resource))
	case TooManyRequests:
		seconds := int((f.Duration + time.Second - 1) / time.Second)
		return apierrors.NewTooManyRequests("too many requests, please try again later", max(seconds, 1))
	case Unavailable:
		return apierrors.NewServiceUnavailable("apiserver is not available")
	}
	return nil
}
