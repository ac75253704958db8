// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Names that left long ago are dropped.
func TestThrottlesDoNotGrow(t *testing.T) {
	g := NewWithT(t)
	now, longest := time.Now(), time.Minute
	all := NewThrottles(time.Second, longest)
	for i := range 10_000 {
		name := multicluster.ClusterName(fmt.Sprint(i))
		all.Acquire(name, now).FollowChange(now)
		all.Release(name, now)
		now = now.Add(time.Second)
	}
	perDelay := int(longest / time.Second)
	g.Expect(len(all.byName)).To(And(BeNumerically(">=", perDelay), BeNumerically("<=", 2*perDelay)))
	g.Expect(all.unused.Len()).To(Equal(len(all.byName)))
}
