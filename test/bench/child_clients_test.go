// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/clients"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// remoteClients are the clients for named profiles of a child.
type remoteClients struct {
	clients *clients.Clients
	members []remoteCluster
}

// benchPlugin gives all clusters the same token.
type benchPlugin struct{}

func (benchPlugin) Name() string    { return "bench" }
func (benchPlugin) Version() string { return "v1" }
func (benchPlugin) Credential(context.Context, plugin.Request) (*plugin.Credential, error) {
	return &plugin.Credential{Token: benchToken}, nil
}

func newRemoteClients(tb testing.TB, todo Task) *remoteClients {
	resolver, err := credentials.New(credentials.Options{
		Plugins:   []func() plugin.Plugin{func() plugin.Plugin { return benchPlugin{} }},
		Providers: []providerfile.Provider{{Name: "bench", Rollcall: providerfile.Extensions{InProcess: "bench"}}},
	})
	check(tb, err)
	tb.Cleanup(resolver.Close)
	source, err := hub.New(todo.Home.Config(), hub.Options{Namespaces: []string{metav1.NamespaceAll}})
	check(tb, err)
	c, err := clients.New(clients.Options{Source: source, Credentials: resolver})
	check(tb, err)
	mctest.StartManager(tb, c)
	return &remoteClients{clients: c, members: todo.Members}
}

// Held is what the process holds.
type Held struct {
	Heap, Goroutines int
	// Memory and PeakMemory are resident, in bytes. They are 0 where there is no /proc.
	Memory, PeakMemory int
}

// Known returns what is held when the inventory has been listed.
func (r *remoteClients) Known(_ int, held *Held) error {
	for began := time.Now(); time.Since(began) < waitLimit; time.Sleep(10 * time.Millisecond) {
		if _, err := r.clients.Client(context.Background(), inventory.Key{Name: "none"}); errors.Is(err, clients.ErrProfileNotFound) {
			return r.Held(0, held)
		}
	}
	return errors.New("the inventory has not been listed")
}

// Held returns what is held now.
func (r *remoteClients) Held(_ int, held *Held) error {
	status, _ := os.ReadFile("/proc/self/status") // before garbage is collected
	*held = Held{Memory: memoryOf(string(status), "VmRSS:"), PeakMemory: memoryOf(string(status), "VmHWM:")}
	now := settled()
	held.Heap, held.Goroutines = now.heap, now.goroutines
	return nil
}

// memoryOf returns a value of /proc/self/status in bytes, 0 if it has none.
func memoryOf(status, name string) (kibibytes int) {
	_, after, _ := strings.Cut(status, name)
	_, _ = fmt.Sscan(after, &kibibytes)
	return kibibytes << 10
}

// Call returns how long it takes to get the client of a member and to send a request.
func (r *remoteClients) Call(i int, took *time.Duration) error {
	began := time.Now()
	c, err := r.clients.Client(context.Background(), inventory.Key{Namespace: "default", Name: r.members[i].Name()})
	if err == nil {
		err = r.send(c)
	}
	*took = time.Since(began)
	return err
}

// CallByHand is Call with a new client.
func (r *remoteClients) CallByHand(i int, took *time.Duration) error {
	config := r.members[i].Config()
	config.BearerToken = benchToken
	began := time.Now()
	c, err := client.New(config, client.Options{})
	if err == nil {
		err = r.send(c)
	}
	*took = time.Since(began)
	return err
}

func (r *remoteClients) send(c client.Client) error {
	return c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: first}, &corev1.ConfigMap{})
}
