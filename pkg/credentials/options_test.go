// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	options, plugins, err := Options{}.complete()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(options.Timeout).To(Equal(30 * time.Second))
	g.Expect(options.MaxConcurrentRuns).To(Equal(8))
	g.Expect(options.RefreshInterval).To(Equal(5 * time.Minute))
	g.Expect(options.Logger.IsZero()).To(BeFalse())
	g.Expect(plugins).To(BeEmpty())
}
