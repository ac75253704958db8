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

type secretRef struct {
	Namespace string `json:"namespace,omitempty"`
}

type nested struct {
	secretRef
	SecretRef *secretRef            `json:"secretRef"`
	List      []secretRef           `json:"list"`
	ByName    map[string]*secretRef `json:"byName"`
	Data      []byte                `json:"data"`
	Since     time.Time             `json:"since"`
	Any       any                   `json:"any"`
	Untagged  string
	Hidden    string `json:"-"`
}

func TestDecodeConfigIsStrict(t *testing.T) {
	for _, test := range []struct {
		name, config, err string
	}{
		{"known fields", `{"namespace":"a","secretRef":{"namespace":"a"},"list":[{"namespace":"a"},{}],"byName":{"Any":{"namespace":"a"}},
			"data":"YQ==","since":"2030-01-02T03:04:05Z","any":{"Namespace":1},"Untagged":"a"}`, ""},
		{"null values", `{"secretRef":null,"list":null,"byName":null,"any":null}`, ""},
		{"the first letter in another case", `{"SecretRef":{}}`, `unknown field "SecretRef"`},
		{"a letter in another case", `{"secretref":{}}`, `unknown field "secretref"`},
		{"beside the right one", `{"secretRef":{},"secretref":{}}`, `unknown field "secretref"`},
		{"another letter of the same fold", `{"ſecretRef":{}}`, `unknown field "ſecretRef"`},
		{"in an embedded struct", `{"Namespace":"a"}`, `unknown field "Namespace"`},
		{"behind a pointer", `{"secretRef":{"nameSpace":"a"}}`, `unknown field "secretRef.nameSpace"`},
		{"in a list", `{"list":[{},{"nameSpace":"a"}]}`, `unknown field "list[1].nameSpace"`},
		{"in a map", `{"byName":{"a":{"nameSpace":"a"}}}`, `unknown field "byName.a.nameSpace"`},
		{"a field without a tag", `{"untagged":"a"}`, `unknown field "untagged"`},
		{"a hidden field", `{"Hidden":"a"}`, `unknown field "Hidden"`},
		{"a repeated field", `{"Untagged":"a","Untagged":"b"}`, `duplicate field "Untagged"`},
		{"a second value", `{} {}`, "invalid character '{' after top-level value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			request := plugin.Request{Cluster: &plugin.Cluster{Config: json.RawMessage(test.config)}}
			_, err := plugin.DecodeConfig[nested](request)
			if test.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(plugin.ErrBadRequest))
			g.Expect(err).To(MatchError("bad request: config of the cluster: " + test.err))
		})
	}
}
