// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package providertest has what the tests of providers share.
package providertest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// Quick are connection options with which what takes minutes takes moments.
func Quick() fleet.ConnectionOptions {
	return fleet.ConnectionOptions{
		ConnectTimeout: 5 * time.Second, MinBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond,
		Probe: fleet.ProbeOptions{Interval: 100 * time.Millisecond, Timeout: time.Second},
	}
}

// Config returns a kubeconfig with the context "main".
func Config(config *rest.Config) *clientcmdapi.Config {
	return &clientcmdapi.Config{
		CurrentContext: "main",
		Contexts:       map[string]*clientcmdapi.Context{"main": {Cluster: "main", AuthInfo: "main"}},
		Clusters: map[string]*clientcmdapi.Cluster{"main": {
			Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"main": {Token: config.BearerToken}},
	}
}

// Encode returns the text of a kubeconfig.
func Encode(t testing.TB, config *clientcmdapi.Config) []byte {
	t.Helper()
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Kubeconfig returns the text of a kubeconfig.
func Kubeconfig(t testing.TB, config *rest.Config) []byte {
	t.Helper()
	return Encode(t, Config(config))
}

// Log is a log in memory.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Logger returns a logger that writes to the Log.
func (l *Log) Logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		fmt.Fprintln(&l.text, prefix, args)
	}, funcr.Options{})
}

// Count counts the lines that contain all texts.
func (l *Log) Count(texts ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for line := range strings.Lines(l.text.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			count++
		}
	}
	return count
}

// Recorder records engagements, and the ConfigMaps that a controller reconciles.
type Recorder struct {
	mu         sync.Mutex
	engaged    map[multicluster.ClusterName]int
	reconciled map[string]int
	objects    int
}

// Record adds a Recorder to the manager.
func Record(t testing.TB, mgr mcmanager.Manager) *Recorder {
	t.Helper()
	r := &Recorder{engaged: map[multicluster.ClusterName]int{}, reconciled: map[string]int{}}
	if err := mgr.Add(r); err != nil {
		t.Fatal(err)
	}
	err := mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			cl, err := mgr.GetCluster(ctx, req.ClusterName)
			if err != nil {
				return reconcile.Result{}, err
			}
			if err := cl.GetClient().Get(ctx, req.NamespacedName, &corev1.ConfigMap{}); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.reconciled[req.ClusterName.String()+" "+req.Name]++
			return reconcile.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Engage implements multicluster.Aware.
func (r *Recorder) Engage(_ context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engaged[name]++
	return nil
}

// Start implements manager.Runnable.
func (r *Recorder) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Engagements counts how often a cluster was engaged.
func (r *Recorder) Engagements(name multicluster.ClusterName) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engaged[name]
}

// Create creates a ConfigMap with a new name in a cluster.
func (r *Recorder) Create(t testing.TB, c *mctest.Cluster) (name string) {
	t.Helper()
	r.mu.Lock()
	r.objects++
	name = fmt.Sprintf("object-%d", r.objects)
	r.mu.Unlock()
	if err := c.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
		t.Fatal(err)
	}
	return name
}

// Reconciled reports whether the ConfigMap of that name was reconciled.
func (r *Recorder) Reconciled(cluster multicluster.ClusterName, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reconciled[cluster.String()+" "+name] > 0
}

// Works creates a ConfigMap and waits until it is reconciled.
func (r *Recorder) Works(t testing.TB, cluster multicluster.ClusterName, c *mctest.Cluster) {
	t.Helper()
	name := r.Create(t, c)
	Await(t, fmt.Sprintf("%s of %s is reconciled", name, cluster), func() bool { return r.Reconciled(cluster, name) })
}

// Await waits until the condition is true.
func Await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(mctest.Timeout)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// StatusOf returns the status of a cluster, the zero value if there is none.
func StatusOf(p interface{ Status() []fleet.ClusterStatus }, name multicluster.ClusterName) fleet.ClusterStatus {
	for _, status := range p.Status() {
		if status.Name == name {
			return status
		}
	}
	return fleet.ClusterStatus{}
}

// AwaitReady waits until a cluster is Ready without an error.
func AwaitReady(t testing.TB, p interface{ Status() []fleet.ClusterStatus }, name multicluster.ClusterName) {
	t.Helper()
	AwaitStatus(t, p, name, fleet.Ready, fleet.Engaged, "")
}

// AwaitStatus waits until a cluster has the state, the reason and, unless it is "", an
// error with the text.
func AwaitStatus(t testing.TB, p interface{ Status() []fleet.ClusterStatus }, name multicluster.ClusterName, state fleet.State, reason fleet.Reason, text string) {
	t.Helper()
	deadline := time.Now().Add(mctest.Timeout)
	for {
		status := StatusOf(p, name)
		if status.State == state && status.Reason == reason && strings.Contains(status.LastError, text) && (text != "" || status.LastError == "") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("cluster %s: %v, want %s (%s) %s", name, status, state, reason, text)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
