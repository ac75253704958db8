// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// loggedError is the last error that a source has logged: sources log what is wrong and
// try again, while a command that lists once must report it.
type loggedError struct{ last atomic.Pointer[string] }

// into returns a context whose logger stores errors, and logs as before.
func (l *loggedError) into(ctx context.Context) context.Context {
	sink := log.FromContext(ctx).GetSink()
	if sink == nil { // logr.Discard
		sink = funcr.New(func(_, _ string) {}, funcr.Options{}).GetSink()
	}
	return log.IntoContext(ctx, logr.New(&recorder{LogSink: sink, last: l}))
}

func (l *loggedError) suffix() string {
	if text := l.last.Load(); text != nil {
		return ": " + *text
	}
	return ""
}

type recorder struct {
	logr.LogSink
	last *loggedError
}

// Info implements logr.LogSink. Sources log an outage, which they expect to end, in this way.
func (r *recorder) Info(level int, message string, keysAndValues ...any) {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if keysAndValues[i] == "error" {
			text := fmt.Sprintf("%s: %v", message, keysAndValues[i+1])
			r.last.last.Store(&text)
		}
	}
	r.LogSink.Info(level, message, keysAndValues...)
}

// Error implements logr.LogSink.
func (r *recorder) Error(err error, message string, keysAndValues ...any) {
	text := message
	if err != nil {
		text = fmt.Sprintf("%s: %v", message, err)
	}
	r.last.last.Store(&text)
	r.LogSink.Error(err, message, keysAndValues...)
}

func (r *recorder) WithName(name string) logr.LogSink {
	return &recorder{LogSink: r.LogSink.WithName(name), last: r.last}
}

func (r *recorder) WithValues(keysAndValues ...any) logr.LogSink {
	return &recorder{LogSink: r.LogSink.WithValues(keysAndValues...), last: r.last}
}
