// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
)

func TestStatusJSON(t *testing.T) {
	g := NewWithT(t)
	status := fleet.ClusterStatus{
		Name: "fleet/eu", Profile: inventory.Key{Namespace: "fleet", Name: "eu"},
		State: fleet.Ready, Reason: fleet.Engaged, Since: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		Alternates: []inventory.Key{{Namespace: "b", Name: "eu"}, {Namespace: "c", Name: "eu"}},
	}
	text, err := json.Marshal(status)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(text).To(MatchJSON(`{
		"name": "fleet/eu", "profile": "fleet/eu", "state": "Ready", "reason": "Engaged", "since": "2026-11-20T12:00:00Z",
		"alternates": ["b/eu", "c/eu"], "openWatches": 0, "queued": 0
	}`))
	var read fleet.ClusterStatus
	g.Expect(json.Unmarshal(text, &read)).To(Succeed())
	g.Expect(read).To(Equal(status))

	g.Expect(json.Unmarshal([]byte(`{"profile":"eu"}`), &read)).To(MatchError(ContainSubstring(`profile: "eu" is not of the form namespace/name`)))
	g.Expect(json.Unmarshal([]byte(`{"profile":"a/b","alternates":["eu"]}`), &read)).To(MatchError(ContainSubstring(`alternates[0]: "eu" is not`)))
}
