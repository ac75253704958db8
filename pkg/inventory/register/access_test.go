// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register_test

import (
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory/register"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
)

// TestAccess connects to a registered member as a controller does, and after a
// rotation again.
func TestAccess(t *testing.T) {
	g := NewWithT(t)
	o := options(t, east)
	mustRegister(t, o)

	// The plugin reads the Secret with its own account.
	kubeconfig := filepath.Join(t.TempDir(), "hub.kubeconfig")
	token, err := hub.IssueToken(t.Context(), hub.PluginAccount, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(hub.WriteKubeconfig(kubeconfig, token)).To(Succeed())
	allowSecrets(t, o.Namespace)
	connect := func() error {
		resolver, err := credentials.New(credentials.Options{
			Plugins: []func() plugin.Plugin{func() plugin.Plugin {
				p := tokensecret.New()
				p.Kubeconfig, p.Namespace = kubeconfig, o.Namespace
				return p
			}},
			Providers: []providerfile.Provider{{
				Name:     string(register.AccessTokenSecret),
				Rollcall: providerfile.Extensions{InProcess: "mc-credential-token-secret"},
			}},
		})
		if err != nil {
			return err
		}
		defer resolver.Close()
		access, err := resolver.Resolve(t.Context(), profileOf(t, o))
		if err != nil {
			return err
		}
		defer access.Release()
		member, err := client.New(access.RESTConfig(), client.Options{})
		if err != nil {
			return err
		}
		return member.List(t.Context(), &corev1.ConfigMapList{})
	}
	g.Expect(connect()).To(Succeed())

	before := secretOf(t, o)
	r := rotateOptions(o)
	r.OlderThan = ptr.To(time.Duration(0))
	time.Sleep(time.Second) // tokens of the same second could be equal
	_, err = register.Rotate(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(secretOf(t, o).Data["token"]).NotTo(Equal(before.Data["token"]))
	g.Expect(connect()).To(Succeed())

	_, err = register.Unregister(t.Context(), unregister(o))
	g.Expect(err).NotTo(HaveOccurred())
}
