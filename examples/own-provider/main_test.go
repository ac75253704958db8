// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestMain(m *testing.M) {
	if !exampletest.Main(main) {
		SetDefaultEventuallyTimeout(mctest.Timeout)
		goleak.VerifyTestMain(m)
	}
}

func TestWrongFlags(t *testing.T) {
	g := NewWithT(t)
	output, exitCode := exampletest.Run(t, "a")
	g.Expect(exitCode).To(Equal(1))
	g.Expect(output).To(ContainSubstring(`unexpected argument \"a\"`))
}

func TestBothProviders(t *testing.T) {
	for name, withoutFleet := range map[string]bool{"source": false, "without a fleet": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir, out := t.TempDir(), &exampletest.Output{}
			write := func(name string, config *rest.Config) {
				t.Helper()
				path := filepath.Join(dir, name+".kubeconfig")
				g.Expect(os.WriteFile(path+".next", exampletest.Kubeconfig(t, config), 0o600)).To(Succeed())
				g.Expect(os.Rename(path+".next", path)).To(Succeed())
			}
			newServer := func(object string) *mctest.Cluster {
				server := mctest.New(t)
				g.Expect(server.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: object}})).To(Succeed())
				return server
			}
			eu, us := newServer("a"), newServer("b")
			write("eu", eu.Config())
			provider, err := newProvider(dir, 10*time.Millisecond, withoutFleet)
			g.Expect(err).NotTo(HaveOccurred())
			mgr, err := newManager(provider, out, mctest.ManagerOptions())
			g.Expect(err).NotTo(HaveOccurred())
			stop := mctest.StartManager(t, mgr)
			g.Eventually(out.String).Should(ContainSubstring(`ConfigMap default/a in cluster "eu"`))
			write("us", us.Config())
			g.Eventually(out.String).Should(ContainSubstring(`ConfigMap default/b in cluster "us"`))

			// An outage of the inventory removes nothing.
			g.Expect(os.WriteFile(filepath.Join(dir, "bad.kubeconfig"), []byte("a: ["), 0o600)).To(Succeed())
			g.Consistently(func() error {
				_, err := mgr.GetCluster(t.Context(), "eu")
				return err
			}, 100*time.Millisecond).Should(Succeed())
			g.Expect(os.Remove(filepath.Join(dir, "bad.kubeconfig"))).To(Succeed())

			if !withoutFleet { // a credential is exchanged
				cl, err := mgr.GetCluster(t.Context(), "us")
				g.Expect(err).NotTo(HaveOccurred())
				us.AddToken("new", "controller")
				write("us", us.ConfigFor("new"))
				g.Eventually(func() string { return cl.GetConfig().BearerToken }).Should(Equal("new"))
			}
			g.Expect(os.Remove(filepath.Join(dir, "eu.kubeconfig"))).To(Succeed())
			g.Eventually(func() error {
				_, err := mgr.GetCluster(t.Context(), "eu")
				return err
			}).Should(MatchError(multicluster.ErrClusterNotFound))
			_, err = mgr.GetCluster(t.Context(), "us")
			g.Expect(err).NotTo(HaveOccurred())
			stop()
		})
	}
}

// A function that fails at once costs neither a CPU nor a line of the log each time.
func TestFailingListIsNotRepeatedAtOnce(t *testing.T) {
	g := NewWithT(t)
	var calls atomic.Int32
	p := &provider{list: func(context.Context) (map[string]*rest.Config, error) {
		calls.Add(1)
		return nil, errors.New("refused")
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	g.Expect(p.Start(ctx, nil)).To(Succeed())
	g.Expect(calls.Load()).To(BeEquivalentTo(1))
}
