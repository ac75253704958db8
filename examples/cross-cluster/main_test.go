// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// If this variable is set, the test binary is the example.
const programVariable = "ROLLCALL_EXAMPLE"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
		return
	}
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

func TestWrongFlags(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		text string
	}{
		{"no provider file", []string{"--from", "fleet/a"}, "--clusterprofile-provider-file must be given"},
		{"an argument that is not a flag", []string{"--from", "fleet/a", "--clusterprofile-provider-file", "a", "b"}, `unexpected argument \"b\"`},
		{"no cluster to copy from", []string{"--clusterprofile-provider-file", "a"}, "--from must be given"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			command := exec.CommandContext(t.Context(), os.Args[0], test.args...)
			command.Env = append(os.Environ(), programVariable+"=1", "KUBECONFIG=/does/not/exist")
			output, err := command.CombinedOutput()
			var exit *exec.ExitError
			g.Expect(errors.As(err, &exit)).To(BeTrue(), "%v", err)
			g.Expect(exit.ExitCode()).To(Equal(1))
			g.Expect(string(output)).To(ContainSubstring(test.text))
		})
	}
}
