// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

func TestOptionDefaults(t *testing.T) {
	type fields = func(o *Options) (value any)
	for _, tc := range []struct {
		name  string
		field fields
		want  any
		set   func(o *Options)
		kept  any
	}{
		{"ConnectTimeout", func(o *Options) any { return o.Connection.ConnectTimeout }, 30 * time.Second, func(o *Options) { o.Connection.ConnectTimeout = 1 }, time.Duration(1)},
		{"StartupLimit", func(o *Options) any { return o.Connection.StartupLimit }, 32, func(o *Options) { o.Connection.StartupLimit = -1 }, -1},
		{"MinBackoff", func(o *Options) any { return o.Connection.MinBackoff }, time.Second, func(o *Options) { o.Connection.MinBackoff = 2 }, time.Duration(2)},
		{"MaxBackoff", func(o *Options) any { return o.Connection.MaxBackoff }, 5 * time.Minute, func(o *Options) { o.Connection.MaxBackoff = 3 }, time.Duration(3)},
		{"Probe.Interval", func(o *Options) any { return o.Connection.Probe.Interval }, 10 * time.Second, func(o *Options) { o.Connection.Probe.Interval = -1 }, time.Duration(-1)},
		{"Probe.Timeout", func(o *Options) any { return o.Connection.Probe.Timeout }, 5 * time.Second, func(o *Options) { o.Connection.Probe.Timeout = 4 }, time.Duration(4)},
		{"Probe.FailureThreshold", func(o *Options) any { return o.Connection.Probe.FailureThreshold }, 3, func(o *Options) { o.Connection.Probe.FailureThreshold = 5 }, 5},
		{"Probe.DropAfter", func(o *Options) any { return o.Connection.Probe.DropAfter }, 10 * time.Minute, func(o *Options) { o.Connection.Probe.DropAfter = 6 }, time.Duration(6)},
		{"Clock", func(o *Options) any { return o.Connection.Clock }, clock.RealClock{}, func(*Options) {}, clock.RealClock{}},
		{
			"ClusterName", func(o *Options) any {
				p := &inventory.Profile{}
				p.Namespace, p.Name = "ns", "n"
				return string(o.ClusterName(p))
			}, "ns/n", func(*Options) {}, "ns/n",
		},
		{"IsReady", func(o *Options) any { return o.IsReady(&inventory.Profile{}) }, true, func(*Options) {}, true},
		{"NewCluster", func(o *Options) any { return o.Connection.NewCluster != nil }, true, func(*Options) {}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, o := range []struct {
				set  func(o *Options)
				want any
			}{{func(*Options) {}, tc.want}, {tc.set, tc.kept}} {
				options := Options{Source: inventory.Merge(), Credentials: struct{ credentials.Method }{}}
				o.set(&options)
				if err := options.complete(); err != nil {
					t.Fatal(err)
				}
				if got := tc.field(&options); got != o.want {
					t.Errorf("%s is %v, want %v", tc.name, got, o.want)
				}
			}
		})
	}
}
