// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/file"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
)

// tested are the tests of each option.
var tested = map[string]any{
	"KubeconfigFiles": TestSeveralProviders,
	"KubeconfigDirs":  TestContextsComeAndGo,
	"KubeconfigGlobs": TestGlobs,
	"Separator":       TestDefaultFiles,
	"ClusterOptions":  TestClusterOptions,
	"Exec":            TestAllowedCommands,
	"Connection":      TestClusterOptions,
}

func TestEachOptionHasATest(t *testing.T) {
	for field := range reflect.TypeFor[file.Options]().Fields() {
		NewWithT(t).Expect(tested).To(HaveKey(field.Name))
	}
}

func TestClusterOptions(t *testing.T) {
	g := NewWithT(t)
	order := make(chan string, 10)
	option := func(name string) []cluster.Option {
		return []cluster.Option{func(*cluster.Options) { order <- name }}
	}
	e := newEnv(t, func(o *file.Options) {
		o.ClusterOptions, o.Connection.ClusterOptions = option("first"), option("second")
	})
	e.create("a.kubeconfig", mctest.New(t).Config())
	providertest.AwaitReady(t, e.provider, e.name("a.kubeconfig", "main"))
	g.Expect([]string{<-order, <-order}).To(Equal([]string{"first", "second"}))
}
