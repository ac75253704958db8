// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package exampletest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// If this variable is set, the test binary is the program that it tests.
const programVariable = "ROLLCALL_EXAMPLE"

// Main is called first by the TestMain of a program. In a process that Run has started it
// calls the program's main and reports true. Otherwise it discards all logs.
func Main(main func()) (done bool) {
	if os.Getenv(programVariable) != "" {
		main()
		return true
	}
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	return false
}

// Run runs the tested program, without a default kubeconfig, and returns what it has
// printed and its exit code.
func Run(t testing.TB, args ...string) (output string, exitCode int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], args...)
	command.Env = append(os.Environ(), programVariable+"=1", "KUBECONFIG=/does/not/exist")
	text, err := command.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("cannot run the program: %v", err)
	}
	return string(text), command.ProcessState.ExitCode()
}

// Output collects what a program prints. It may be used concurrently.
type Output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

// String returns the text so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Kubeconfig returns a kubeconfig whose current context is "main".
func Kubeconfig(t testing.TB, config *rest.Config) []byte {
	t.Helper()
	text, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "main",
		Contexts:       map[string]*clientcmdapi.Context{"main": {Cluster: "main", AuthInfo: "main"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"main": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"main": {Token: config.BearerToken}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
