// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr/funcr"
)

// Where there are no notifications, the files are polled often, which is logged once.
func TestPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		n := newNotifier(log, func() (*fsnotify.Watcher, error) { return nil, errors.New("too many open files") })
		defer n.Close()
		n.Watch([]string{"/a"}, nil)
		for range 3 {
			start := time.Now()
			<-n.C
			if took := time.Since(start); took > fastPoll {
				t.Errorf("polled after %s", took)
			}
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "too many open files") {
			t.Errorf("logged %q", lines)
		}
	})
}
