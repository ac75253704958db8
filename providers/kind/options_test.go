// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
)

func TestConnectionOptions(t *testing.T) {
	for _, test := range []struct {
		name     string
		given    fleet.ConnectionOptions
		expected time.Duration
	}{
		{"the default is short", fleet.ConnectionOptions{}, 2 * time.Second},
		{"it is not less than the minimum", fleet.ConnectionOptions{MinBackoff: 5 * time.Second}, 5 * time.Second},
		{"it can be set", fleet.ConnectionOptions{MaxBackoff: time.Minute}, time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, err := optionsOf([]Options{{Connection: test.given}})
			NewWithT(t).Expect(o.connection().MaxBackoff, err).To(Equal(test.expected))
		})
	}
}

func TestOrderOfOptions(t *testing.T) {
	g := NewWithT(t)
	rests := func(text string) []func(*rest.Config) error {
		return []func(*rest.Config) error{func(*rest.Config) error { return errors.New(text) }}
	}
	o := Options{
		RESTOptions: rests("top"), ClusterOptions: make([]cluster.Option, 1),
		Connection: fleet.ConnectionOptions{RESTOptions: rests("nested"), ClusterOptions: make([]cluster.Option, 2)},
	}
	connection := o.connection()
	g.Expect(connection.ClusterOptions).To(HaveLen(3))
	g.Expect(connection.RESTOptions).To(HaveLen(2))
	g.Expect(connection.RESTOptions[0](nil)).To(MatchError("top"))
	g.Expect(connection.RESTOptions[1](nil)).To(MatchError("nested"))
}
