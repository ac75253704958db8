// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
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
	SetDefaultEventuallyTimeout(mctest.Timeout)
	goleak.VerifyTestMain(m)
}

// members is a credential method without plugins: the profiles have the names of the
// clusters.
type members struct{ *mctest.Fleet }

func (m members) Resolve(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	for _, c := range m.Clusters() {
		if c.Name() == profile.Name {
			return credentials.FromRESTConfig(c.Config()), nil
		}
	}
	return nil, errors.New("no such cluster")
}

func original(name, profile, data string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{annotation: profile}},
		Data:       map[string]string{"data": data},
	}
}

// copyIn returns the data of a cluster's copy, "" if there is none.
func copyIn(c *mctest.Cluster, name string) func() string {
	return func() string {
		found := &corev1.ConfigMap{}
		if err := c.Get(client.ObjectKey{Namespace: "default", Name: name}, found); err != nil {
			return ""
		}
		return found.Data["data"]
	}
}

func TestCopies(t *testing.T) {
	g := NewWithT(t)
	home := mctest.New(t, mctest.Options{Scheme: newScheme()})
	f := mctest.NewFleet(t, 3)
	east, west, hangs := f.Cluster(0), f.Cluster(1), f.Cluster(2)
	options := mctest.ManagerOptions()
	options.Scheme = newScheme()
	mgr, err := ctrl.NewManager(home.Config(), options)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(setup(t.Context(), mgr, members{f})).To(Succeed())
	mctest.StartManager(t, mgr)
	add := func(c *mctest.Cluster) {
		p := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.Name()}}
		p.Spec.ClusterManager.Name = "test"
		g.Expect(home.Create(p)).To(Succeed())
	}
	add(east)
	add(hangs)

	g.Expect(home.Create(original("one", east.Name(), "a"))).To(Succeed())
	g.Eventually(copyIn(east, "one")).Should(Equal("a"))
	g.Expect(copyIn(west, "one")()).To(BeEmpty(), "only the named cluster gets it")

	hangs.Fault(mctest.Hang)
	g.Expect(home.Create(original("stuck", hangs.Name(), "a"))).To(Succeed())
	g.Expect(home.Create(original("early", west.Name(), "a"))).To(Succeed())
	g.Expect(home.Update(original("one", east.Name(), "b"))).To(Succeed())
	g.Eventually(copyIn(east, "one")).Should(Equal("b"))

	add(west)
	g.Eventually(copyIn(west, "early")).Should(Equal("a"), "a profile that appears later")
	hangs.Clear()
	g.Eventually(copyIn(hangs, "stuck")).Should(Equal("a"))
}

func TestWrongFlags(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		text string
	}{
		{"no provider file", []string{}, "--clusterprofile-provider-file must be given"},
		{"an argument that is not a flag", []string{"--clusterprofile-provider-file", "a", "b"}, `unexpected argument \"b\"`},
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
