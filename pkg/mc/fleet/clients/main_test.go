// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/clients"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	SetDefaultEventuallyTimeout(mctest.Timeout)
	SetDefaultEventuallyPollingInterval(2 * time.Millisecond)
	goleak.VerifyTestMain(m)
}

// inventoryAndCredentials is an inventory.Source and a credentials.Method. The server
// of a profile is the key of its configuration.
type inventoryAndCredentials struct {
	events chan func(inventory.Sink)

	mu       sync.Mutex // guards what follows
	configs  map[string]*rest.Config
	hangs    map[string]bool
	resolved map[string]int
	changed  func()
}

func newInventory() *inventoryAndCredentials {
	return &inventoryAndCredentials{
		events:  make(chan func(inventory.Sink)),
		configs: map[string]*rest.Config{}, hangs: map[string]bool{}, resolved: map[string]int{},
	}
}

// Run implements inventory.Source.
func (i *inventoryAndCredentials) Run(ctx context.Context, sink inventory.Sink) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-i.events:
			event(sink)
		}
	}
}

// Resolve implements credentials.Method.
func (i *inventoryAndCredentials) Resolve(ctx context.Context, p *inventory.Profile) (*credentials.Access, error) {
	server := p.Status.AccessProviders[0].Cluster.Server
	i.mu.Lock()
	i.resolved[server]++
	config, hangs := i.configs[server], i.hangs[server]
	i.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if config == nil {
		return nil, fmt.Errorf("no credentials for %q", server)
	}
	return credentials.FromRESTConfig(config), nil
}

// NotifyChange implements credentials.ChangeNotifier.
func (i *inventoryAndCredentials) NotifyChange(_ context.Context, changed func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed = changed
}

// notify reports a change of the credentials.
func (i *inventoryAndCredentials) notify() {
	i.mu.Lock()
	changed := i.changed
	i.mu.Unlock()
	changed()
}

func (i *inventoryAndCredentials) set(server string, config *rest.Config) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.configs[server] = config
}

func (i *inventoryAndCredentials) hang(server string, hangs bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hangs[server] = hangs
}

func (i *inventoryAndCredentials) count(server string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.resolved[server]
}

// send returns when the sink has had the event.
func (i *inventoryAndCredentials) send(event func(inventory.Sink)) {
	done := make(chan struct{})
	i.events <- func(sink inventory.Sink) {
		event(sink)
		close(done)
	}
	<-done
}

func (i *inventoryAndCredentials) put(p *inventory.Profile) {
	i.send(func(sink inventory.Sink) { sink.Put(p) })
}

func (i *inventoryAndCredentials) remove(name string) {
	i.send(func(sink inventory.Sink) { sink.Remove(ref(name)) })
}

func (i *inventoryAndCredentials) sync() { i.send(inventory.Sink.Synced) }

func profile(name, server string) *inventory.Profile {
	p := &inventory.Profile{}
	p.Namespace, p.Name, p.UID = "fleet", name, types.UID(name)
	p.Status.AccessProviders = []inventory.AccessProvider{{Name: "test"}}
	p.Status.AccessProviders[0].Cluster.Server = server
	return p
}

func ref(name string) inventory.Key { return inventory.Key{Namespace: "fleet", Name: name} }

// env has running Clients for in-process clusters, whose profiles have their names.
type env struct {
	*inventoryAndCredentials
	*clients.Clients
	t    *testing.T
	stop func()
}

func newEnv(t *testing.T, change func(*clients.Options), members ...*mctest.Cluster) *env {
	t.Helper()
	i := newInventory()
	options := clients.Options{Source: i, Credentials: i}
	if change != nil {
		change(&options)
	}
	c, err := clients.New(options)
	if err != nil {
		t.Fatal(err)
	}
	e := &env{inventoryAndCredentials: i, Clients: c, t: t, stop: mctest.StartManager(t, c)}
	for _, member := range members {
		e.set(member.Name(), member.Config())
		e.put(profile(member.Name(), member.Name()))
	}
	e.sync()
	return e
}

// client returns the client for a cluster.
func (e *env) client(c *mctest.Cluster) client.WithWatch {
	e.t.Helper()
	member, err := e.Client(e.t.Context(), ref(c.Name()))
	if err != nil {
		e.t.Fatal(err)
	}
	return member
}

// read sends a request.
func read(ctx context.Context, c client.Client) error {
	return c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &corev1.Namespace{})
}

// reads returns a function that sends a request, for Eventually.
func reads(t *testing.T, c client.Client) func() error {
	return func() error { return read(t.Context(), c) }
}

// soon returns a context that ends after a moment.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
