// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

type place struct {
	Namespace string `json:"namespace,omitempty"`
}

type nested struct {
	place
	SecretRef *place            `json:"secretRef"`
	List      []place           `json:"list"`
	ByName    map[string]*place `json:"byName"`
	Data      []byte            `json:"data"`
	Since     time.Time         `json:"since"`
	Any       any               `json:"any"`
	Untagged  string
	Hidden    string `json:"-"`
}

func TestNamesOfFieldsAreComparedExactly(t *testing.T) {
	for _, test := range []struct {
		name, config, unknown string
	}{
		{"all as they are", `{"namespace":"a","secretRef":{"namespace":"a"},"list":[{"namespace":"a"},{}],"byName":{"Any":{"namespace":"a"}},
			"data":"YQ==","since":"2030-01-02T03:04:05Z","any":{"Namespace":1},"Untagged":"a"}`, ""},
		{"nothing in them", `{"secretRef":null,"list":null,"byName":null,"any":null}`, ""},
		{"the first letter", `{"SecretRef":{}}`, "SecretRef"},
		{"a letter within", `{"secretref":{}}`, "secretref"},
		{"beside the right one", `{"secretRef":{},"secretref":{}}`, "secretref"},
		{"another letter of the same fold", `{"ſecretRef":{}}`, "ſecretRef"},
		{"of an embedded struct", `{"Namespace":"a"}`, "Namespace"},
		{"behind a pointer", `{"secretRef":{"nameSpace":"a"}}`, "nameSpace"},
		{"in a list", `{"list":[{},{"nameSpace":"a"}]}`, "nameSpace"},
		{"in a map", `{"byName":{"a":{"nameSpace":"a"}}}`, "nameSpace"},
		{"of a field without a tag", `{"untagged":"a"}`, "untagged"},
		{"of a field that is left out", `{"Hidden":"a"}`, "Hidden"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			request := plugin.Request{Cluster: &plugin.Cluster{Config: json.RawMessage(test.config)}}
			_, err := plugin.DecodeConfig[nested](request)
			if test.unknown == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(plugin.ErrBadRequest))
			g.Expect(err).To(MatchError(`bad request: config of the cluster: unknown field "` + test.unknown + `"`))
		})
	}
}
