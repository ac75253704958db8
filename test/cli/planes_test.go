// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// planes are a hub and its members. The API server of down is stopped.
type planes struct {
	hub              *realfleet.Hub
	east, west, down *realfleet.Member
	pluginConfig     string // kubeconfig for the plugin
	controller       string // path of the example
}

// startPlanes starts the control planes, which end with the test.
func startPlanes(t *testing.T) *planes {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("no real control planes, because KUBEBUILDER_ASSETS is not set; use make test")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	start := func(name string) (*realfleet.ControlPlane, error) {
		cp, err := realfleet.StartControlPlane(ctx, name, assets, dir)
		if err == nil {
			t.Cleanup(func() { _ = cp.Stop() })
		}
		return cp, err
	}
	p := &planes{pluginConfig: filepath.Join(dir, "plugin.kubeconfig")}
	p.controller = filepath.Join(dir, "cluster-inventory-api")
	var group errgroup.Group
	group.Go(func() error {
		build := exec.CommandContext(ctx, "go", "build", "-o", p.controller, "github.com/rollcall-dev/rollcall/examples/cluster-inventory-api")
		if output, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building the example: %w\n%s", err, output)
		}
		return nil
	})
	group.Go(func() error {
		module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api").Output()
		if err != nil {
			return err
		}
		cp, err := start("hub")
		if err != nil {
			return err
		}
		crds := filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "bases")
		p.hub, err = realfleet.NewHub(ctx, cp, filepath.Join(crds, "multicluster.x-k8s.io_clusterprofiles.yaml"))
		return err
	})
	for name, member := range map[string]**realfleet.Member{"east": &p.east, "west": &p.west, "down": &p.down} {
		group.Go(func() error {
			cp, err := start(name)
			if err != nil {
				return err
			}
			*member, err = realfleet.NewMember(ctx, cp)
			if err == nil {
				t.Cleanup(func() { (*member).Network.Close() })
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal("cannot start the control planes: ", err)
	}
	if err := p.fill(ctx); err != nil {
		t.Fatal("cannot set up the hub: ", err)
	}
	return p
}

// fill adds the members to the hub, and stops one. It creates inventories for the
// scripts that register members.
func (p *planes) fill(ctx context.Context) error {
	for _, name := range []string{"register", "rotate"} {
		if err := p.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	for _, member := range []*realfleet.Member{p.east, p.west, p.down} {
		if err := member.CreateConfigMap(ctx, "from-"+member.Name); err != nil {
			return err
		}
		if err := p.hub.AddMember(ctx, member); err != nil {
			return err
		}
	}
	token, err := p.hub.IssueToken(ctx, p.hub.PluginAccount, nil)
	if err != nil {
		return err
	}
	if err := p.hub.WriteKubeconfig(p.pluginConfig, token); err != nil {
		return err
	}
	return p.down.StopAPIServer()
}

// setUp sets the variables of a script, and writes its kubeconfig and provider file.
func (p *planes) setUp(env *testscript.Env, plugins string) error {
	config, err := clientcmd.LoadFromFile(p.hub.Kubeconfig)
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = realfleet.FleetNamespace
	kubeconfig := filepath.Join(env.WorkDir, "hub.kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	providers := filepath.Join(env.WorkDir, "providers.yaml")
	file, err := json.Marshal(providerfile.File{Providers: []providerfile.Provider{{
		Name: realfleet.AccessProvider,
		ExecConfig: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1",
			Command:    "mc-credential-token-secret",
			Args:       []string{"--kubeconfig=" + p.pluginConfig, "--namespace=" + realfleet.TokenNamespace},

			ProvideClusterInfo: true,
		},
	}}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(providers, file, 0o600); err != nil {
		return err
	}
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	if _, err := os.Stat(kubectl); err != nil {
		return fmt.Errorf("KUBEBUILDER_ASSETS has no kubectl: unset it and use make test: %w", err)
	}
	for name, value := range map[string]string{
		"HUB": p.hub.Kubeconfig, "EAST": p.east.Kubeconfig, "WEST": p.west.Kubeconfig, "DOWN": p.down.Kubeconfig,
		"KUBECONFIG": kubeconfig, "PLUGINS": plugins, "PROVIDERS": providers,
		"MC_CREDENTIAL_PROVIDER_FILE": providers, "MC_CREDENTIAL_PLUGIN_DIRS": plugins,
		"HOME": env.WorkDir, "EAST_TOKEN": p.east.Token, "KUBECTL": kubectl, "CONTROLLER": p.controller,
	} {
		env.Setenv(name, value)
	}
	if _, err := os.Stat(plugins); err != nil {
		return fmt.Errorf("folder of the plugins: %w", err)
	}
	return nil
}
