// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Profiles and clusters determine the text of all cells.
func TestRowsAreEscaped(t *testing.T) {
	g := NewWithT(t)
	const script = `<script>"&'`
	s := ClusterStatus{
		Name: script, Profile: inventory.Key{Namespace: script, Name: script}, State: script, Reason: script,
		Server: script, UID: script, ClusterID: script, ClusterSet: script, Version: script,
		Alternates: []inventory.Key{{Namespace: script, Name: script}}, LastError: script, AccessError: script + "access",
	}
	rows := string(newPage([]ClusterStatus{s}, true, time.Now()).Rows)
	g.Expect(rows).NotTo(ContainSubstring("<script>"))
	g.Expect(rows).NotTo(ContainSubstring(`'`))
	g.Expect(rows).To(ContainSubstring("&#34;&amp;&#39;access"))
}
