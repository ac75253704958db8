// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestStep(t *testing.T) {
	errFailed := errors.New("failed")
	tests := []struct {
		name     string
		terminal bool
		takes    time.Duration
		err      error
		want     string
	}{
		{
			name:  "a short step",
			takes: 200 * time.Millisecond,
			want:  "building etcd (soon)\nbuilding etcd: done after 200ms\n",
		},
		{
			name:  "a long step prints a line every 30 s",
			takes: 65 * time.Second,
			want: "building etcd (soon)\nstill building etcd, 30s\nstill building etcd, 1m0s\n" +
				"building etcd: done after 1m5s\n",
		},
		{
			name:  "a failed step",
			takes: time.Second, err: errFailed,
			want: "building etcd (soon)\nbuilding etcd: failed after 1s\n",
		},
		{
			name:     "a terminal line, updated every second",
			terminal: true, takes: 1500 * time.Millisecond,
			want: "building etcd (soon)\r\x1b[Kbuilding etcd (soon), 1s\r\x1b[Kbuilding etcd: done after 1.5s\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				reporter := &Reporter{out: &out, terminal: tt.terminal}
				err := reporter.Step("building etcd", "soon", func() error {
					time.Sleep(tt.takes)
					return tt.err
				})
				if !errors.Is(err, tt.err) {
					t.Errorf("error %v, want %v", err, tt.err)
				}
				if out.String() != tt.want {
					t.Errorf("got  %q\nwant %q", out.String(), tt.want)
				}
			})
		})
	}
}

func TestQuietReporter(t *testing.T) {
	var out bytes.Buffer
	_ = New(&out, true).Step("building etcd", "", func() error { return nil })
	if out.Len() > 0 {
		t.Errorf("got %q", &out)
	}
}
