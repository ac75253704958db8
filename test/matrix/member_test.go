// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// selectedLabel is that of the profiles that are selected.
const selectedLabel = "selected"

const profileNamespace = "fleet"

// member is a cluster of the fleet. One goroutine at a time uses it.
type member struct {
	*mctest.Cluster
	env    *env
	name   multicluster.ClusterName
	random *rand.Rand

	// What the fleet is expected to have done.
	engagements int
	listed      int    // how often ConfigMaps are listed
	mayList     bool   // again after a fault
	behind      string // a resource whose cache cannot follow the cluster, or ""

	profile  string // its name
	account  string // that the profile names
	selected bool
	serial   int // of names
}

func (e *env) newMember(c *mctest.Cluster, random *rand.Rand) *member {
	m := &member{Cluster: c, env: e, name: multicluster.ClusterName(c.Name()), random: random, profile: "profile-0", account: "account-0"}
	m.issueToken()
	m.setSelected(true)
	return m
}

// next returns a new name.
func (m *member) next(kind string) string {
	m.serial++
	return fmt.Sprintf("%s-%d", kind, m.serial)
}

// key is what the plugin knows the member's current account by.
func (m *member) key() string { return m.Name() + "/" + m.account }

// issueToken gives the current account a token that the cluster accepts, and
// returns what revokes the earlier one.
func (m *member) issueToken() (revokeEarlier func()) {
	earlier := m.env.accounts.get(m.key()).Token
	token := m.Name() + "-" + m.next("token")
	m.AddToken(token, "matrix")
	m.env.accounts.set(m.key(), &plugin.Credential{Token: token, Expiry: m.expiry()})
	return func() {
		if earlier != "" {
			m.RevokeToken(earlier)
		}
	}
}

// issueCertificate gives the current account a client certificate.
func (m *member) issueCertificate() {
	certificate, key := m.ClientCertificate("matrix")
	m.env.accounts.set(m.key(), &plugin.Credential{ClientCertificate: certificate, ClientKey: key, Expiry: m.expiry()})
}

// expiry returns another time for each credential.
func (m *member) expiry() time.Time {
	m.serial++
	return time.Now().Add(24*time.Hour + time.Duration(m.serial)*time.Hour).Truncate(time.Second)
}

// putProfile updates the profile to the cluster's address, CA, account and label.
func (m *member) putProfile() {
	config := m.Config()
	m.env.lists.register(config.Host, m.Name())
	p := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{
		Namespace: profileNamespace, Name: m.profileName(m.profile), UID: types.UID(m.profileName(m.profile)),
		Labels:      map[string]string{selectedLabel: fmt.Sprint(m.selected), inventory.LabelMemberID: m.Name()},
		Annotations: map[string]string{inventory.AnnotationClusterName: m.Name()},
	}}
	p.Status.AccessProviders = []inventory.AccessProvider{{Name: "matrix", Cluster: clientcmdv1.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData,
		Extensions: []clientcmdv1.NamedExtension{{
			Name:      "client.authentication.k8s.io/exec",
			Extension: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"account":%q}`, m.key())},
		}},
	}}}
	m.env.events <- func(sink inventory.Sink) { sink.Put(p) }
}

func (m *member) profileName(profile string) string { return m.Name() + "-" + profile }

// removeProfile removes a profile of the cluster.
func (m *member) removeProfile(profile string) {
	key := inventory.Key{Namespace: profileNamespace, Name: m.profileName(profile)}
	m.env.events <- func(sink inventory.Sink) { sink.Remove(key) }
}

// setSelected changes the profile's label. The fleet is expected to engage a
// cluster that is selected.
func (m *member) setSelected(selected bool) {
	if selected {
		m.engagements++
		m.listed++
	}
	m.selected = selected
	m.putProfile()
}

// deselect waits until nothing of the cluster is left in the fleet.
func (m *member) deselect() error {
	m.setSelected(false)
	return eventually(func() error {
		if _, err := m.env.fleet.Get(context.Background(), m.name); !errors.Is(err, multicluster.ErrClusterNotFound) {
			return fmt.Errorf("still in the fleet: %w", err)
		}
		if status := m.status(); status.State != "" {
			return fmt.Errorf("still has the status %v", status)
		}
		if n, watches := m.Connections(), m.OpenWatches(""); n+watches > 0 {
			return fmt.Errorf("still has %d connections, %d watches", n, watches)
		}
		return nil
	})
}

func (m *member) status() fleet.ClusterStatus {
	for _, status := range m.env.fleet.Status() {
		if status.Name == m.name && status.State != fleet.Duplicate {
			return status
		}
	}
	return fleet.ClusterStatus{}
}

// awaitReady waits until the status shows that all is well, and what is used.
func (m *member) awaitReady() error {
	return eventually(func() error {
		s := m.status()
		behind := m.behind != "" && strings.Contains(s.LastError, m.behind)
		if s.State != fleet.Ready || s.Reason != fleet.Engaged || s.LastError != "" && !behind || s.AccessError != "" {
			return fmt.Errorf("status is %v", s)
		}
		if host, expiry := m.Config().Host, m.env.accounts.get(m.key()).Expiry; s.Server != host || !s.CredentialExpiry.Equal(expiry) {
			return fmt.Errorf("uses %s until %v, want %s until %v", s.Server, s.CredentialExpiry, host, expiry)
		}
		if s.UID != string(m.UID()) {
			return fmt.Errorf("UID is %s, want %s", s.UID, m.UID())
		}
		return nil
	})
}

// awaitDuplicate waits until the profile is a duplicate.
func (m *member) awaitDuplicate() error {
	return eventually(func() error {
		for _, s := range m.env.fleet.Status() {
			if s.Profile.Name == m.profileName(m.profile) && s.State == fleet.Duplicate && s.DuplicateOf == m.name {
				return nil
			}
		}
		return fmt.Errorf("profile %s is no duplicate: %v", m.profile, m.env.fleet.Status())
	})
}

// awaitDegraded waits until the status shows that the cluster is Degraded for one
// of the reasons.
func (m *member) awaitDegraded(reasons ...fleet.Reason) error {
	return eventually(func() error {
		s := m.status()
		for _, reason := range reasons {
			if s.State == fleet.Degraded && s.Reason == reason && s.LastError != "" {
				return nil
			}
		}
		return fmt.Errorf("status is %v, want Degraded for one of %v", s, reasons)
	})
}

// checkUnharmed checks that the cluster is Ready and reconciles, and that it has
// been neither engaged nor listed more often than expected.
func (m *member) checkUnharmed() error {
	if err := m.awaitReady(); err != nil {
		return err
	}
	// client-go lists again after a watch without an event that ends in less than
	// a second. The first object may be part of the initial list.
	for range 2 {
		if err := m.checkReconciles("ConfigMap"); err != nil {
			return err
		}
	}
	if n := m.env.recorder.engagementsOf(m.name); n != m.engagements {
		return fmt.Errorf("engaged %d times, want %d", n, m.engagements)
	}
	queries := m.env.lists.of(m.Name(), "configmaps")
	if m.mayList {
		m.listed, m.mayList = len(queries), false
	}
	if len(queries) != m.listed {
		return fmt.Errorf("ConfigMaps are listed %d times, want %d: %q", len(queries), m.listed, queries)
	}
	return nil
}

// checkReconciles creates an object and waits until it is reconciled.
func (m *member) checkReconciles(kind string) error {
	name, err := m.create(kind)
	if err != nil {
		return err
	}
	return m.awaitReconciled(kind, name)
}

func (m *member) awaitReconciled(kind, name string) error {
	return eventually(func() error {
		if m.env.recorder.reconciled(m.name, kind, name) {
			return nil
		}
		return fmt.Errorf("%s %s is not reconciled, status is %v, controller: %v", kind, name, m.status(), m.controllerStatus(kind))
	})
}

// create creates an object with a new name, without a request.
func (m *member) create(kind string) (name string, err error) {
	name = m.next("object")
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	switch kind {
	case "ConfigMap":
		return name, m.Create(&corev1.ConfigMap{ObjectMeta: meta})
	case "Secret":
		return name, m.Create(&corev1.Secret{ObjectMeta: meta})
	default:
		return name, m.Create(widget(name))
	}
}

// controllerStatus returns the status of the controller of a kind.
func (m *member) controllerStatus(kind string) controllerStatus {
	return m.env.controllerStatus(kind, m.name)
}

// checkIndexes checks that the cluster has all indexes.
func (m *member) checkIndexes() error {
	for _, i := range m.env.indexes.list() {
		if err := m.checkIndex(i); err != nil {
			return err
		}
	}
	return nil
}

// index returns the position of the member in the fleet.
func (m *member) index() int { return slices.Index(m.env.members, m) }

// client returns the client of the engaged cluster.
func (m *member) client() (client.Client, error) {
	cl, err := m.env.fleet.Get(context.Background(), m.name)
	if err != nil {
		return nil, err
	}
	return cl.GetClient(), nil
}

// eventually returns the last error of the check, if it does not succeed in time.
func eventually(check func() error) error {
	deadline := time.Now().Add(mctest.Timeout)
	for {
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// accounts are the credentials that the plugin returns.
type accounts struct {
	mu    sync.Mutex // guards what follows
	all   map[string]*plugin.Credential
	hangs map[string]bool
}

func (a *accounts) get(key string) plugin.Credential {
	a.mu.Lock()
	defer a.mu.Unlock()
	if credential := a.all[key]; credential != nil {
		return *credential
	}
	return plugin.Credential{}
}

func (a *accounts) set(key string, credential *plugin.Credential) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all[key] = credential
}

// setHangs makes the plugin hang for an account.
func (a *accounts) setHangs(key string, hangs bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hangs[key] = hangs
}

// Name implements plugin.Plugin.
func (a *accounts) Name() string { return "matrix" }

// Version implements plugin.Plugin.
func (a *accounts) Version() string { return "v1" }

// Credential implements plugin.Plugin.
func (a *accounts) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	config, err := plugin.DecodeConfig[struct {
		Account string `json:"account"`
	}](request)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	hangs := a.hangs[config.Account]
	a.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	credential := a.get(config.Account)
	return &credential, nil
}
