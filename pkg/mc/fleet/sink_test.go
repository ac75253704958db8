// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestDuplicatePrecedence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		env := start(t, nil, withConnector(slowConnector{}), func(o *fleet.Options) {
			o.ClusterName = func(*inventory.Profile) multicluster.ClusterName { return "one" }
		})
		of := func(name string, year int) *inventory.Profile {
			p := profile(name, healthy)
			p.CreationTimestamp = metav1.NewTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
			return p
		}
		holder := func() (name string) {
			synctest.Wait()
			for _, status := range env.Status() {
				if status.State == fleet.Ready {
					name = status.Profile.Name
				}
			}
			return name
		}
		env.source.put(of("holder", 2025), of("d", 2023), of("c", 2021), of("b", 2022), of("a", 2021))
		g.Expect(holder()).To(Equal("holder"), "the first profile keeps the name")
		env.source.put(of("d", 2020)) // recreated with an older time
		g.Expect(holder()).To(Equal("holder"))
		for _, next := range []string{"d", "a", "c", "b"} {
			env.source.remove(holder())
			g.Expect(holder()).To(Equal(next))
		}
		env.stop()
	})
}
