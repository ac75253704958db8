// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	credentialplugin "github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/plugins/oidc"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

// trusting are members that trust the issuer of the shared hub.
var trusting struct {
	start        sync.Once
	err          error // of start
	north, south *realfleet.Member
	rotated      bool // the hub signs with its next key
}

// oidcEnv is a hubEnv whose plugin is mc-credential-oidc.
type oidcEnv struct {
	*hubEnv
	north, south *realfleet.Member
}

// newOIDCEnv returns an env that has not been started. The arguments are added to
// those that allow each of the two members its own audience.
func newOIDCEnv(t *testing.T, args ...string) *oidcEnv {
	t.Helper()
	g := NewWithT(t)
	p := realPlanes(t)
	trusting.start.Do(func() { trusting.err = p.startTrusting(t) })
	g.Expect(trusting.err).NotTo(HaveOccurred())
	e := &oidcEnv{north: trusting.north, south: trusting.south}
	resolver, err := credentials.New(credentials.Options{
		Plugins: []func() credentialplugin.Plugin{func() credentialplugin.Plugin { return oidc.New() }},
		Providers: []providerfile.Provider{{
			Name: realfleet.OIDCAccessProvider,
			ExecConfig: &clientcmdapi.ExecConfig{
				APIVersion: "client.authentication.k8s.io/v1", ProvideClusterInfo: true,
				Args: append(p.hub.PluginArgs(p.pluginConfig, e.north, e.south), args...),
			},
			Rollcall: providerfile.Extensions{InProcess: oidc.New().Name()},
		}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(resolver.Close)
	e.hubEnv = newHubEnv(t, func(o *clusterinventoryapi.Options) { o.Credentials = resolver })
	return e
}

func (p *controlPlanes) startTrusting(t *testing.T) error {
	if err := p.hub.PublishNextKey(); err != nil {
		return err
	}
	if err := p.hub.AllowTokenRequests(t.Context()); err != nil {
		return err
	}
	var group errgroup.Group
	for name, member := range map[string]**realfleet.Member{"north": &trusting.north, "south": &trusting.south} {
		group.Go(func() error {
			cp, err := p.hub.StartTrustingControlPlane(t.Context(), name, os.Getenv(assetsVariable), p.dir)
			if err != nil {
				return err
			}
			p.add(cp)
			*member, err = p.hub.NewTrustingMember(t.Context(), cp)
			return err
		})
	}
	return group.Wait()
}

// token runs the plugin for the member.
func (e *oidcEnv) token(m *realfleet.Member) string {
	e.t.Helper()
	info, err := json.Marshal(map[string]any{
		"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
		"spec": map[string]any{"cluster": credentialplugin.Cluster{
			Server: "https://" + m.Network.Addr(), Config: json.RawMessage(`{"audience":"` + m.Audience + `"}`),
		}},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	if credentialplugin.Run(e.t.Context(), oidc.New(), e.hub.PluginArgs(e.pluginConfig, m), []string{"KUBERNETES_EXEC_INFO=" + string(info)}, &stdout, &stderr) != credentialplugin.ExitOK {
		e.t.Fatal(stderr.String())
	}
	var output struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	if err := json.Unmarshal([]byte(stdout.String()), &output); err != nil {
		e.t.Fatal(err)
	}
	token := output.Status.Token
	e.t.Cleanup(func() { checkNotLogged(e.t, token) })
	return token
}

// asHub asks the hub to authenticate the token.
func (e *oidcEnv) asHub(token string) (int, error) {
	return (&realfleet.Member{ControlPlane: e.hub.ControlPlane}).Status(e.t.Context(), token)
}

func TestMembersTrustTheHub(t *testing.T) {
	g := NewWithT(t)
	e := newOIDCEnv(t)
	e.add(e.north)
	e.add(e.south)
	e.start()
	for _, m := range []*realfleet.Member{e.north, e.south} {
		e.create(m, "one")
		g.Eventually(e.reconciled(m, "one")).Should(BeTrue())
	}
	status := e.statusOf(e.north.Namespace, e.north.Name)()
	g.Expect(status.CredentialExpiry).To(BeTemporally("~", time.Now().Add(time.Hour), time.Minute))

	token := e.token(e.north)
	config := rest.AnonymousClientConfig(e.north.Config)
	config.BearerToken = token
	c, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	review := &authenticationv1.SelfSubjectReview{}
	g.Expect(c.Create(t.Context(), review)).To(Succeed())
	g.Expect(review.Status.UserInfo.Username).To(Equal("hub:system:serviceaccount:fleet:members"))

	g.Expect(e.north.Status(t.Context(), token)).To(Equal(http.StatusOK))
	g.Expect(e.south.Status(t.Context(), token)).To(Equal(http.StatusUnauthorized), "the token is for the other member")
	g.Expect(e.asHub(token)).To(Equal(http.StatusUnauthorized), "the token is not for the hub")
}

// TestUntrustedTokens shows the one line that an operator gets for each cause.
func TestUntrustedTokens(t *testing.T) {
	issuer := realPlanes(t).hub.Issuer()
	for _, test := range []struct {
		name     string
		audience string
		member   func(*oidcEnv) *realfleet.Member
		args     []string
		reason   fleet.Reason
		text     []string
	}{
		{
			name: "the audience of another member", audience: "south", reason: fleet.ResolveFailed,
			text: []string{`audience "south" is not allowed for server https://`, `whose audience is "north", see --allowed-audience`},
		},
		{
			name: "an audience that the member does not expect", audience: "nord", args: []string{"--allowed-audience=nord=*"}, reason: fleet.Unauthorized,
			text: []string{"rejected the credentials (401)", `token of issuer "` + issuer + `" for audience "nord"`, "check that it trusts this issuer, expects this audience and can reach the issuer"},
		},
		{
			name: "a member that does not trust the hub", audience: "east", args: []string{"--allowed-audience=east=*"}, reason: fleet.Unauthorized,
			member: func(e *oidcEnv) *realfleet.Member { return e.east },
			text:   []string{"rejected the credentials (401)", `token of issuer "` + issuer + `" for audience "east"`, "check that it trusts this issuer"},
		},
		{
			name: "the hub's own audience", audience: issuer, args: []string{"--allowed-audience=https://*=*"}, reason: fleet.ResolveFailed,
			text: []string{`audience "` + issuer + `" is one of the hub's own API server`, "give the member an audience of its own"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newOIDCEnv(t, test.args...)
			m := e.north
			if test.member != nil {
				m = test.member(e)
			}
			changed := *m
			changed.Audience = test.audience
			e.add(&changed)
			e.start()
			status := e.statusOf(m.Namespace, m.Name)
			g.Eventually(status).Should(HaveField("Reason", test.reason))
			message := status().LastError
			for _, text := range test.text {
				g.Expect(message).To(ContainSubstring(text))
			}
			g.Expect(message).NotTo(ContainSubstring("\n"))
		})
	}
}

func TestHubRotatesItsSigningKey(t *testing.T) {
	g := NewWithT(t)
	e := newOIDCEnv(t)
	if trusting.rotated {
		t.Skip("the members read the hub's keys again in an hour only")
	}
	north, south := e.north, e.south
	e.add(north)
	e.start()
	e.create(north, "before")
	g.Eventually(e.reconciled(north, "before")).Should(BeTrue())
	first := e.token(north)

	e.network.SetDown(true) // the API server would wait for its watches
	trusting.rotated = true
	g.Expect(e.hub.SignWithNextKey()).To(Succeed())
	e.network.SetDown(false)
	second := e.token(north)
	g.Expect(keyOf(t, second)).NotTo(Equal(keyOf(t, first)))
	g.Expect(north.Status(t.Context(), second)).To(Equal(http.StatusOK), "a token of the new key")
	g.Expect(north.Status(t.Context(), first)).To(Equal(http.StatusOK), "a token of the previous key")

	north.Network.Cut() // an open watch outlives its token
	e.create(north, "after")
	g.Eventually(e.reconciled(north, "after")).Should(BeTrue())
	e.add(south) // its first token is one of the new key
	e.create(south, "after")
	g.Eventually(e.reconciled(south, "after")).Should(BeTrue())
	g.Expect(e.engagements(north)).To(Equal(1), "it was never disengaged")
	g.Expect(e.engagements(south)).To(Equal(1))
}

// keyOf returns the ID of the key that signed the token.
func keyOf(t *testing.T, token string) string {
	t.Helper()
	header, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	if err != nil {
		t.Fatal(err)
	}
	var key struct {
		ID string `json:"kid"`
	}
	if err := json.Unmarshal(header, &key); err != nil {
		t.Fatal(err)
	}
	return key.ID
}
