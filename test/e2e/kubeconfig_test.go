// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

const exampleDir = "../../examples/kubeconfig"

// userConfig writes a kubeconfig with the contexts hub and east, and returns its path.
func userConfig(t *testing.T, p *controlPlanes) string {
	t.Helper()
	all := clientcmdapi.NewConfig()
	all.CurrentContext = "hub"
	for name, cp := range map[string]*realfleet.ControlPlane{"hub": p.hub.ControlPlane, "east": p.east.ControlPlane} {
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		all.Clusters[name] = &clientcmdapi.Cluster{Server: cp.Config.Host, CertificateAuthorityData: cp.Config.CAData}
		all.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: cp.Config.CertData, ClientKeyData: cp.Config.KeyData}
	}
	path := filepath.Join(t.TempDir(), "config")
	NewWithT(t).Expect(clientcmd.WriteToFile(*all, path)).To(Succeed())
	return path
}

// TestKubeconfigSecretScript adds a member with the script of the example, with the
// permissions of the example and no others.
func TestKubeconfigSecretScript(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("the script needs kubectl: ", err)
	}
	p, g := realPlanes(t), NewWithT(t)
	config := userConfig(t, p)
	run := func(name string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, args...)
		command.Env = append(os.Environ(), "KUBECONFIG="+config)
		out, err := command.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), "%s", out)
		return string(out)
	}
	run("kubectl", "apply", "-f", filepath.Join(exampleDir, "rbac.yaml"))
	script := filepath.Join(exampleDir, "scripts", "create-kubeconfig-secret.sh")
	g.Expect(run(script, "--context", "east", "--name", "east", "--namespace", "clusters")).To(
		Equal("Secret clusters/east has the kubeconfig of east\n"))

	account := &corev1.ServiceAccount{}
	g.Expect(p.hub.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "controller"}, account)).To(Succeed())
	token, err := p.hub.IssueToken(t.Context(), account, nil)
	g.Expect(err).NotTo(HaveOccurred())
	management := rest.AnonymousClientConfig(p.hub.Config)
	management.BearerToken = token

	provider := kubeconfig.New(kubeconfig.Options{Namespace: "clusters"})
	mgr, err := mcmanager.New(management, provider, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	recorder := newRecorder()
	recorder.watchConfigMaps(t, mgr)
	stop := mctest.StartManager(t, mgr)
	defer stop()
	g.Expect(p.east.CreateConfigMap(t.Context(), "from-script")).To(Succeed())
	g.Eventually(func() bool { return recorder.reconciled("east", "from-script") }).Should(BeTrue(), "%v", provider.Status())
	g.Expect(provider.Status()).To(ConsistOf(And(HaveField("State", fleet.Ready), HaveField("UID", Not(BeEmpty())))))

	tokenInUse := func() string {
		cl, err := provider.Get(t.Context(), "east")
		if err != nil {
			return fmt.Sprint(err)
		}
		return cl.GetConfig().BearerToken
	}
	first := tokenInUse()
	run(script, "-c", "east", "-n", "clusters", "--skip-create-rbac", "--duration", "2h")
	g.Eventually(tokenInUse).ShouldNot(Equal(first), "the new token is in use")
	g.Expect(recorder.engagements("east")).To(Equal(1))

	// The profile is valid in a hub.
	cl, err := provider.Get(t.Context(), "east")
	g.Expect(err).NotTo(HaveOccurred())
	current, _ := fleet.ProfileFrom(cl)
	profile := current.DeepCopy()
	profile.Namespace = "default"
	g.Expect(p.hub.Client.Create(t.Context(), profile)).To(Succeed())
	profile.Status = *current.Status.DeepCopy()
	g.Expect(p.hub.Client.Status().Update(t.Context(), profile)).To(Succeed())
	g.Expect(inventory.Fingerprint(profile)).To(Equal(inventory.Fingerprint(current)))
	g.Expect(p.hub.Client.Delete(t.Context(), profile)).To(Succeed())

	run(script, "-c", "east", "--name", "limited", "-n", "clusters", "-a", "limited", "-t", "role", "--server", "https://east.example.com")
	g.Expect(p.east.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "limited"}, &rbacv1.RoleBinding{})).To(Succeed())
	limited := &corev1.Secret{}
	g.Expect(p.hub.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "limited"}, limited)).To(Succeed())
	g.Expect(string(limited.Data["kubeconfig"])).To(ContainSubstring(`server: "https://east.example.com"`))
	g.Expect(p.hub.Client.Delete(t.Context(), limited)).To(Succeed())

	secret := &corev1.Secret{}
	g.Expect(p.hub.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "east"}, secret)).To(Succeed())
	g.Expect(secret.Annotations).To(BeEmpty(), "no copy of the kubeconfig")
	g.Expect(p.hub.Client.Delete(t.Context(), secret)).To(Succeed())
	g.Eventually(provider.Status).Should(BeEmpty())
	g.Expect(p.east.DeleteConfigMap(t.Context(), "from-script")).To(Succeed())
}

func TestKubeconfigSecretScriptErrors(t *testing.T) {
	script := filepath.Join(exampleDir, "scripts", "create-kubeconfig-secret.sh")
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"no context", nil, "--context must be given"},
		{"a missing value", []string{"--context"}, "--context needs a value"},
		{"an unknown option", []string{"--contxt", "a"}, "unknown option --contxt"},
		{"another role type", []string{"-c", "a", "-t", "x"}, "--role-type must be clusterrole or role, not x"},
		{"a missing file", []string{"-c", "a", "-r", "/does/not/exist"}, "cannot read /does/not/exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), script, test.args...).CombinedOutput()
			NewWithT(t).Expect(err).To(HaveOccurred())
			NewWithT(t).Expect(string(out)).To(ContainSubstring(test.want))
		})
	}
}
