// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
	"github.com/rollcall-dev/rollcall/providers/kind"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	gomega.SetDefaultEventuallyTimeout(mctest.Timeout)
	goleak.VerifyTestMain(m)
}

// env is a manager with a provider and a controller of ConfigMaps, and a container
// engine.
type env struct {
	*providertest.Recorder
	*engine
	provider *kind.Provider
	mgr      mcmanager.Manager
	log      providertest.Log
	lists    providertest.Lists
	stop     func()
}

// newEnv starts a manager whose provider uses a stand-in for Docker.
func newEnv(t *testing.T, change ...func(*kind.Options)) *env {
	t.Helper()
	e := &env{engine: newEngine(t, "docker")}
	e.start(change...)
	return e
}

// start starts a manager with a new provider.
func (e *env) start(change ...func(*kind.Options)) {
	e.t.Helper()
	options := quick()
	options.RESTOptions = append(options.RESTOptions, e.lists.Option)
	for _, c := range change {
		c(&options)
	}
	e.provider = kind.New(options)
	e.newManager()
	e.stop = mctest.StartManager(e.t, e.mgr)
}

// quick are options with which changes are noticed in moments.
func quick() kind.Options {
	return kind.Options{Interval: 20 * time.Millisecond, Connection: providertest.Quick()}
}

func (e *env) newManager() {
	e.t.Helper()
	options := mctest.ManagerOptions()
	options.Logger = e.log.Logger()
	var err error
	if e.mgr, err = mcmanager.New(&rest.Config{}, e.provider, options); err != nil {
		e.t.Fatal(err)
	}
	e.Recorder = providertest.Record(e.t, e.mgr)
}

// isGone reports whether the provider does not have the cluster.
func (e *env) isGone(name string) bool {
	for _, status := range e.provider.Status() {
		if string(status.Name) == name {
			return false
		}
	}
	return true
}

// engine is a stand-in for the command line of a container engine.
type engine struct {
	t   *testing.T
	dir string
	ids atomic.Int64
}

// newEngine sets PATH to a folder that only has stand-ins of these names.
func newEngine(t *testing.T, names ...string) *engine {
	t.Helper()
	e := &engine{t: t, dir: t.TempDir()}
	bin := t.TempDir()
	script, err := filepath.Abs(filepath.Join("testdata", "engine.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Symlink(script, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KIND_EXPERIMENTAL_PROVIDER", "")
	t.Setenv("FAKE_ENGINE", e.dir)
	t.Setenv("PATH", bin)
	return e
}

// create creates a cluster, with a new container.
func (e *engine) create(name string, config *rest.Config) {
	e.t.Helper()
	e.setConfig(name, config)
	e.setPort(name, config)
	e.set("clusters/"+name+"/id", fmt.Sprintf("%064d", e.ids.Add(1))) // last: then it exists
}

// setConfig replaces the kubeconfig in the container of a cluster.
func (e *engine) setConfig(name string, config *rest.Config) {
	e.t.Helper()
	config = rest.CopyConfig(config)
	config.Host = "https://" + name + "-control-plane:6443" // as in the network of the containers
	e.set("clusters/"+name+"/admin.conf", string(providertest.Kubeconfig(e.t, config)))
}

// setPort sets the port on this machine of a cluster.
func (e *engine) setPort(name string, config *rest.Config) {
	e.t.Helper()
	server, err := url.Parse(config.Host)
	if err != nil {
		e.t.Fatal(err)
	}
	e.set("clusters/"+name+"/ports", server.Host)
}

// delete deletes a cluster.
func (e *engine) delete(name string) {
	e.t.Helper()
	e.remove("clusters/" + name + "/id") // first: then it does not exist
	if err := os.RemoveAll(filepath.Join(e.dir, "clusters", name)); err != nil {
		e.t.Fatal(err)
	}
}

// set replaces a file of the stand-in.
func (e *engine) set(path, content string) {
	e.t.Helper()
	path = filepath.Join(e.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		e.t.Fatal(err)
	}
	temporary := filepath.Join(e.dir, "new")
	if err := os.WriteFile(temporary, []byte(content+"\n"), 0o600); err != nil {
		e.t.Fatal(err)
	}
	if err := os.Rename(temporary, path); err != nil {
		e.t.Fatal(err)
	}
}

// remove removes a file of the stand-in.
func (e *engine) remove(path string) {
	e.t.Helper()
	if err := os.Remove(filepath.Join(e.dir, path)); err != nil {
		e.t.Fatal(err)
	}
}

// commands counts the commands that contain a text.
func (e *engine) commands(text string) int {
	e.t.Helper()
	content, err := os.ReadFile(filepath.Join(e.dir, "commands"))
	if err != nil && !os.IsNotExist(err) {
		e.t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, text) {
			count++
		}
	}
	return count
}
