// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
)

func TestRestoredHub(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	g.Expect(c.Create(profile("kept", "1"))).To(Succeed())
	sink := run(t, c, hub.Options{Namespaces: everywhere})
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	backup := c.Snapshot()
	for i := range 5 { // the hub stays far behind after it is restored
		g.Expect(c.Create(profile(fmt.Sprintf("lost%d", i), "1"))).To(Succeed())
	}
	g.Eventually(sink.content).WithTimeout(timeout).Should(ContainSubstring("lost4"))

	c.Restore(backup)
	g.Expect(c.Create(profile("new", "1"))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/kept=1 default/new=1"))
	g.Expect(c.Create(profile("newer", "1"))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/kept=1 default/new=1 default/newer=1"))
}
