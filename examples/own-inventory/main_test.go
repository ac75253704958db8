// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// list is a service that lists clusters.
type list struct {
	mu      sync.Mutex // guards what follows
	entries []entry
	broken  bool
}

func (l *list) set(broken bool, clusters ...*mctest.Cluster) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries, l.broken = nil, broken
	for _, c := range clusters {
		l.entries = append(l.entries, entry{Name: c.Name(), Region: "region-of-" + c.Name(), Server: c.Config().Host, CA: c.Config().CAData})
	}
}

func (l *list) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(l.entries)
}

// tokens is a credential method without plugins.
type tokens struct{ fleet *mctest.Fleet }

func (t tokens) Resolve(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	for _, c := range t.fleet.Clusters() {
		if c.Name() == inventory.ClusterName(profile) {
			cfg := c.Config()
			cfg.Host = inventory.AccessProviders(profile)[0].Cluster.Server
			return credentials.FromRESTConfig(cfg), nil
		}
	}
	return nil, http.ErrNotSupported
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInventoryChanges(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(20 * time.Second)
	members := mctest.NewFleet(t, 3)
	one, two, three := members.Cluster(0), members.Cluster(1), members.Cluster(2)
	listed := &list{}
	listed.set(false, one, two)
	server := httptest.NewServer(listed)
	defer server.Close()

	var mu sync.Mutex
	var lines []string
	logged := func(parts ...string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, line := range lines {
				found := true
				for _, part := range parts {
					found = found && strings.Contains(line, part)
				}
				if found {
					return true
				}
			}
			return false
		}
	}
	logger := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})

	source := &service{url: server.URL, every: 10 * time.Millisecond, client: server.Client()}
	mgr, err := newManager(mctest.New(t).Config(), source, tokens{members}, mcmanager.Options{
		Logger:     logger,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // for -count
	})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	}()

	for _, c := range []*mctest.Cluster{one, two} {
		g.Eventually(logged("Namespace found", `"`+c.Name()+`"`, "region-of-"+c.Name())).Should(BeTrue())
	}
	listed.set(true)
	g.Eventually(logged("cannot list clusters", "500")).Should(BeTrue())
	g.Expect(one.OpenWatches("namespaces")).To(Equal(1), "no cluster leaves while the service fails")

	listed.set(false, two, three)
	g.Eventually(logged("Namespace found", "region-of-"+three.Name())).Should(BeTrue())
	g.Eventually(func() int { return one.OpenWatches("namespaces") }).Should(BeZero(), "the cluster has left")
	g.Expect(two.Requests("list", "namespaces")+two.Requests("watch", "namespaces")).To(BeNumerically("<=", 2), "the cluster has not been engaged again")
}
