// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

type runnable func(context.Context) error

func (r runnable) Start(ctx context.Context) error { return r(ctx) }

// standIn acts as a test, and keeps its errors.
type standIn struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (s *standIn) Helper()                   {}
func (s *standIn) Cleanup(f func())          { s.cleanups = append(s.cleanups, f) }
func (s *standIn) Fatal(a ...any)            { panic(fmt.Sprint(a...)) }
func (s *standIn) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (s *standIn) Errorf(f string, a ...any) {
	s.errors = append(s.errors, fmt.Sprintf(f, a...))
}

// end does what the end of a test does.
func (s *standIn) end() {
	for _, cleanup := range slices.Backward(s.cleanups) {
		cleanup()
	}
}

func TestStartManager(t *testing.T) {
	untilCancelled := func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
	hang := make(chan struct{})
	for _, tc := range []struct {
		name  string
		start runnable
		want  []string
	}{
		{"it runs until it is stopped", untilCancelled, nil},
		{"it ends by itself", func(context.Context) error { return nil }, nil},
		{"it fails", func(context.Context) error { return errors.New("broken") }, []string{"mctest: mctest_test.runnable failed: broken"}},
		{"it does not stop", func(context.Context) error {
			<-hang
			return nil
		}, []string{"mctest: mctest_test.runnable did not stop within 1m0s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, stopped := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					g := NewWithT(t)
					hang = make(chan struct{})
					running := 0
					tb := &standIn{TB: t}
					stop := mctest.StartManager(tb, runnable(func(ctx context.Context) error {
						running++
						defer func() { running-- }()
						return tc.start(ctx)
					}))
					synctest.Wait()
					if stopped {
						stop()
						stop()
						g.Expect(tb.errors).To(Equal(tc.want))
					}
					tb.end()
					g.Expect(tb.errors).To(Equal(tc.want))
					close(hang)
					synctest.Wait()
					g.Expect(running).To(BeZero())
				})
			}
		})
	}
}
