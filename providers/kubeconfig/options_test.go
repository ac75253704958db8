// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

// tested are the tests of each option.
var tested = map[string]any{
	"Namespace":             TestSeveralProviders,
	"KubeconfigSecretLabel": TestSeveralProviders,
	"KubeconfigSecretKey":   TestSeveralProviders,
	"ClusterOptions":        TestClusterOptions,
	"RESTOptions":           TestWeekOfRotations,
	"ControllerName":        TestClusterOptions,
	"Hub":                   TestOnlyLabelledSecretsAreRead,
	"Kubeconfig":            TestFilesAndCommandsFromSecrets,
	"Connection":            TestClusterOptions,
}

func TestEachOptionHasATest(t *testing.T) {
	for field := range reflect.TypeFor[kubeconfig.Options]().Fields() {
		NewWithT(t).Expect(tested).To(HaveKey(field.Name))
	}
}

func TestClusterOptions(t *testing.T) {
	g := NewWithT(t)
	order := make(chan string, 10)
	option := func(name string) []cluster.Option {
		return []cluster.Option{func(*cluster.Options) { order <- name }}
	}
	e := newEnv(t, func(o *kubeconfig.Options) {
		o.ControllerName = "my-name"
		o.ClusterOptions, o.Connection.ClusterOptions = option("first"), option("second")
	})
	member := mctest.New(t)
	e.create("eu", member.Config())
	providertest.AwaitReady(t, e.provider, "eu")
	g.Expect([]string{<-order, <-order}).To(Equal([]string{"first", "second"}))
	g.Expect(e.log.Count("my-name", "Reading kubeconfigs")).To(Equal(1))
}
