// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestLogOfMissingPermissions(t *testing.T) {
	for _, tc := range []struct {
		name           string
		options        hub.Options
		reads, missing string
	}{
		{
			"the whole hub", hub.Options{Namespaces: everywhere, LabelSelector: labels.Set{"env": "test"}.AsSelector()},
			`"source"="ClusterProfiles of the hub with labels \"env=test\""`,
			"in all namespaces of the hub; to read only some, set Namespaces",
		},
		{
			"one namespace", hub.Options{Namespace: "flet"},
			`"source"="ClusterProfiles of the hub in namespace \"flet\""`,
			`ClusterProfiles in namespace \"flet\" in the hub`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newHub(t)
			c.Fault(mctest.Forbidden.On("clusterprofiles"))
			logged := &logBuffer{}
			run(t, c, tc.options, logged)
			NewWithT(t).Eventually(logged.text).WithTimeout(timeout).Should(And(ContainSubstring(tc.reads), ContainSubstring(tc.missing)))
		})
	}
}
