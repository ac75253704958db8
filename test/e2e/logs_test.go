// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

// captureLevel is the verbosity of captured logs. From 9 on, client-go times
// connections, with a data race of its own; the quickstart looks for tokens at
// the highest verbosity.
const captureLevel = 8

// logs is where the process logs to.
var logs capturedLogs

// capturedLogs keeps what is logged during the tests that ask for it, and drops
// the rest.
type capturedLogs struct {
	on atomic.Bool

	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *capturedLogs) logger() logr.Logger {
	write := func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		fmt.Fprintln(&l.text, prefix, args)
	}
	return logr.New(switchedSink{funcr.New(write, funcr.Options{Verbosity: captureLevel}).GetSink(), &l.on})
}

// capture keeps what is logged from now to the end of the test.
func (l *capturedLogs) capture(t *testing.T) {
	t.Helper()
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	verbosity := flags.Lookup("v").Value
	before := verbosity.String()
	_ = verbosity.Set(strconv.Itoa(captureLevel))
	l.on.Store(true)
	t.Cleanup(func() {
		l.on.Store(false)
		_ = verbosity.Set(before)
	})
}

func (l *capturedLogs) contain(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.text.Bytes(), []byte(s))
}

// switchedSink is a sink that can be switched off.
type switchedSink struct {
	logr.LogSink
	on *atomic.Bool
}

func (s switchedSink) Enabled(level int) bool { return s.on.Load() && s.LogSink.Enabled(level) }

func (s switchedSink) Error(err error, msg string, keysAndValues ...any) {
	if s.on.Load() {
		s.LogSink.Error(err, msg, keysAndValues...)
	}
}

func (s switchedSink) WithValues(keysAndValues ...any) logr.LogSink {
	return switchedSink{s.LogSink.WithValues(keysAndValues...), s.on}
}

func (s switchedSink) WithName(name string) logr.LogSink {
	return switchedSink{s.LogSink.WithName(name), s.on}
}
