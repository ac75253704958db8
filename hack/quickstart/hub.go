// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// The credential plugins. One gets stored tokens from the hub; the other requests
// tokens for a member that trusts the hub.
const (
	pluginProgram     = "mc-credential-token-secret"
	oidcPluginProgram = "mc-credential-oidc"
)

// hub has a ClusterProfile for each member, and the tokens for a credential plugin.
type hub struct {
	*realfleet.Hub
	bin, dir         string
	pluginKubeconfig string // path

	asiaAgain *realfleet.Member // asia, for a second profile
}

func (h *hub) terms() terms {
	return terms{
		clusters: "a hub and two clusters",
		place:    "hub",
		entry:    "ClusterProfile",
		explanation: []string{
			"A ClusterProfile (KEP-4322) has the cluster's server and its access provider. The token is",
			"in a Secret that only the plugin can read, and is sent to no other server.",
		},
		touched:     "The updates were heartbeats: they changed only times in the status.",
		permissions: "It is configured only for the hub, where it can only read ClusterProfiles:",
		programs: []string{
			"./examples/cluster-inventory-api",
			"./plugins/token-secret/cmd/" + pluginProgram, "./plugins/oidc/cmd/" + oidcPluginProgram,
		},
	}
}

func (h *hub) setUp(ctx context.Context, r *report, q *quickstart) error {
	h.bin, h.dir = q.bin, q.dir
	// The CRD of the same version as the Go types.
	inventoryAPI, err := moduleDir(ctx, r, q.root, "sigs.k8s.io/cluster-inventory-api")
	if err != nil {
		return err
	}
	crd := filepath.Join(inventoryAPI, "config", "crd", "bases", "multicluster.x-k8s.io_clusterprofiles.yaml")
	cp, err := q.startControlPlane(ctx, "hub")
	if err != nil {
		return err
	}
	if h.Hub, err = realfleet.NewHub(ctx, cp, crd); err != nil {
		return err
	}
	return h.AllowTokenRequests(ctx)
}

func (h *hub) flags(ctx context.Context) (flags, tokens []string, err error) {
	controller := filepath.Join(h.dir, controllerKubeconfigName)
	h.pluginKubeconfig = filepath.Join(h.dir, "plugin.kubeconfig")
	for path, account := range map[string]*corev1.ServiceAccount{controller: h.ControllerAccount, h.pluginKubeconfig: h.PluginAccount} {
		token, err := h.IssueToken(ctx, account, nil)
		if err != nil {
			return nil, nil, err
		}
		if err := h.WriteKubeconfig(path, token); err != nil {
			return nil, nil, err
		}
		tokens = append(tokens, token)
	}
	return []string{
		"--kubeconfig=" + controller,
		"--clusterprofile-provider-file=" + h.providerFile(),
		"--credential-plugin-dir=" + h.bin,
		"--trusted-namespaces=" + realfleet.FleetNamespace + "," + realfleet.SecondNamespace,
	}, tokens, h.writeProviderFile(h.tokenSecret())
}

func (h *hub) providerFile() string { return filepath.Join(h.dir, "providers.json") }

// tokenSecret is the entry of the provider file for members with a token in the hub.
func (h *hub) tokenSecret() providerfile.Provider {
	args := []string{"--kubeconfig=" + h.pluginKubeconfig, "--namespace=" + realfleet.TokenNamespace}
	return pluginEntry(realfleet.AccessProvider, pluginProgram, args)
}

func pluginEntry(accessProvider, program string, args []string) providerfile.Provider {
	return providerfile.Provider{
		Name: accessProvider,
		ExecConfig: &clientcmdapi.ExecConfig{
			APIVersion:         "client.authentication.k8s.io/v1",
			Command:            program,
			Args:               args,
			ProvideClusterInfo: true,
		},
	}
}

// writeProviderFile replaces the provider file (KEP-5339), which names the plugins for
// the access providers of the profiles. A running controller never reads half of it.
func (h *hub) writeProviderFile(providers ...providerfile.Provider) error {
	content, err := json.MarshalIndent(providerfile.File{Providers: providers}, "", "  ")
	if err != nil {
		return err
	}
	next := h.providerFile() + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, h.providerFile())
}

// startTrustingMember starts a cluster that trusts the hub, and adds the plugin for it
// to the provider file. No token is stored for it.
func (q *quickstart) startTrustingMember(ctx context.Context, r *report, h *hub, name string) (*realfleet.Member, error) {
	cp, err := h.StartTrustingControlPlane(ctx, name, q.assets, q.dir)
	if err != nil {
		return nil, err
	}
	q.stopLater(cp)
	m, err := h.NewTrustingMember(ctx, cp)
	if err != nil {
		return nil, err
	}
	q.closeLater(m)
	if err := m.AllowIdentity(ctx); err != nil {
		return nil, err
	}
	// The plugin gives out tokens only for the addresses in its arguments, and a change
	// of these is a change of access. So they have that of the second profile already.
	if h.asiaAgain, err = m.Again(ctx, realfleet.SecondNamespace); err != nil {
		return nil, err
	}
	q.closeLater(h.asiaAgain)
	args := h.PluginArgs(h.pluginKubeconfig, m, h.asiaAgain)
	if err := h.writeProviderFile(h.tokenSecret(), pluginEntry(realfleet.OIDCAccessProvider, oidcPluginProgram, args)); err != nil {
		return nil, err
	}
	r.Explain("asia trusts the hub: no token is stored. A plugin requests tokens from the hub that are")
	r.Explain("valid only in asia. The running controller reads the plugin's entry in the provider file:")
	line, err := q.expect(ctx, r, q.controller.stderr, fmt.Sprintf("the log line “%s”", fileChanged), logs(fileChanged, ""))
	if err == nil {
		r.Quote("%s", shorten(line, "providers"))
	}
	return m, err
}

func (h *hub) clusterName(m *realfleet.Member) string { return m.Namespace + "/" + m.Name }

func (h *hub) add(ctx context.Context, m *realfleet.Member) (string, error) {
	return "ClusterProfile " + h.clusterName(m), h.AddMember(ctx, m)
}

func (h *hub) setAccess(ctx context.Context, m *realfleet.Member, server string) error {
	if err := h.PutToken(ctx, m); err != nil {
		return err
	}
	return h.PutServer(ctx, m, server)
}

func (h *hub) touch(ctx context.Context, m *realfleet.Member) error { return h.Heartbeat(ctx, m) }

func (h *hub) remove(ctx context.Context, m *realfleet.Member) error { return h.DeleteProfile(ctx, m) }

func (h *hub) look() string {
	return "kubectl --kubeconfig " + h.Kubeconfig + " get clusterprofiles -A"
}

// deleteFirstProfile creates a second profile for a member, in another namespace and
// with another address, and deletes the first one.
func (q *quickstart) deleteFirstProfile(ctx context.Context, r *report, first, second *realfleet.Member) error {
	if err := q.add(ctx, r, second); err != nil {
		return err
	}
	r.Explain("A second profile is not a second cluster:")
	if err := q.expectLogged(ctx, r, second, duplicate, "other"); err != nil {
		return err
	}
	lists := q.controller.stderr.Matching(listsConfigMaps(first, second))
	if len(lists) == 0 {
		return fmt.Errorf("found no list of the ConfigMaps of %s in the log, not even the first", first.Name)
	}

	r.Explain("It has another address, and takes over when the first one is deleted:")
	if err := q.remove(ctx, first); err != nil {
		return err
	}
	for _, message := range []string{tookOver, switched} {
		if err := q.expectLogged(ctx, r, first, message, "server"); err != nil {
			return err
		}
	}
	first.Network.Close()
	if err := first.CreateConfigMap(ctx, "after-the-first-profile"); err != nil {
		return err
	}
	if err := q.expectReconciled(ctx, r, first, "after-the-first-profile"); err != nil {
		return err
	}
	if more := q.controller.stderr.Matching(listsConfigMaps(first, second))[len(lists):]; len(more) > 0 {
		return fmt.Errorf("expected no more lists of the ConfigMaps of %s, found %q", first.Name, more)
	}
	r.Explain("Its log has all requests, and no more lists of ConfigMaps: cache and watch continued.")
	q.switches[q.source.clusterName(first)]++
	return q.expectUntouched(first)
}
