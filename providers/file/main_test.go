// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/file"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	gomega.SetDefaultEventuallyTimeout(mctest.Timeout)
	goleak.VerifyTestMain(m)
}

// env is a manager with a provider of the files in a folder, and a controller of
// ConfigMaps.
type env struct {
	*providertest.Recorder
	t        *testing.T
	dir      string
	provider *file.Provider
	mgr      mcmanager.Manager
	log      providertest.Log
	lists    providertest.Lists
	stop     func()
}

func newEnv(t *testing.T, change ...func(*file.Options)) *env {
	t.Helper()
	e := &env{t: t, dir: t.TempDir()}
	e.newProvider(change...)
	e.start()
	return e
}

func (e *env) newProvider(change ...func(*file.Options)) {
	e.t.Helper()
	options := file.Options{KubeconfigDirs: []string{e.dir}, Connection: providertest.Quick()}
	options.Connection.RESTOptions = []func(*rest.Config) error{e.lists.Option}
	for _, c := range change {
		c(&options)
	}
	var err error
	if e.provider, err = file.New(options); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) start() {
	e.t.Helper()
	options := mctest.ManagerOptions()
	options.Logger = e.log.Logger()
	var err error
	if e.mgr, err = mcmanager.New(mctest.New(e.t).Config(), e.provider, options); err != nil {
		e.t.Fatal(err)
	}
	e.Recorder = providertest.Record(e.t, e.mgr)
	e.stop = mctest.StartManager(e.t, e.mgr)
}

// name returns the name of the cluster of a context in a file.
func (e *env) name(path, context string) multicluster.ClusterName {
	return multicluster.ClusterName(filepath.Join(e.dir, path) + "+" + context)
}

// write replaces a file at once.
func (e *env) write(path, content string) {
	e.t.Helper()
	path = filepath.Join(e.dir, path)
	next := filepath.Join(filepath.Dir(path), ".next")
	if err := os.WriteFile(next, []byte(content), 0o700); err != nil {
		e.t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		e.t.Fatal(err)
	}
}

// create writes a kubeconfig with the context "main".
func (e *env) create(path string, config *rest.Config) {
	e.t.Helper()
	e.write(path, string(providertest.Kubeconfig(e.t, config)))
}

// isGone reports whether the provider does not have the cluster.
func (e *env) isGone(name multicluster.ClusterName) func() bool {
	return func() bool { return providertest.StatusOf(e.provider, name).Name == "" }
}

// merged returns a kubeconfig with a context for each cluster, named by its key.
func merged(configs map[string]*clientcmdapi.Config) *clientcmdapi.Config {
	all := clientcmdapi.NewConfig()
	for name, c := range configs {
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		all.Clusters[name], all.AuthInfos[name] = c.Clusters["main"], c.AuthInfos["main"]
	}
	return all
}
