// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	clusterapi "github.com/rollcall-dev/rollcall/providers/cluster-api"
)

// If this variable is set, the test binary is the example.
const programVariable = "ROLLCALL_EXAMPLE"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
		return
	}
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

func TestWrongFlags(t *testing.T) {
	g := NewWithT(t)
	command := exec.CommandContext(t.Context(), os.Args[0], "--namespace", "a", "b")
	command.Env = append(os.Environ(), programVariable+"=1", "KUBECONFIG=/does/not/exist")
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	g.Expect(errors.As(err, &exit)).To(BeTrue(), "%v", err)
	g.Expect(exit.ExitCode()).To(Equal(1))
	g.Expect(string(output)).To(ContainSubstring(`unexpected argument \"b\"`))
}

// output is what the example prints.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func TestExample(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(mctest.Timeout)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	management, member := mctest.New(t, mctest.Options{Scheme: scheme}), mctest.New(t)
	config := member.Config()
	text, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"c": {Token: config.BearerToken}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eu"}}
	g.Expect(management.Create(cluster, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eu-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "eu"}},
		Data:       map[string][]byte{"value": text},
	})).To(Succeed())
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	g.Expect(management.UpdateStatus(cluster)).To(Succeed())
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"k": "v"}}
	g.Expect(member.Create(cm)).To(Succeed())

	out := &output{}
	mgr, err := newManager(management.Config(), clusterapi.Options{}, out, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)
	g.Eventually(out.String).Should(ContainSubstring(`ConfigMap default/a in cluster "default/eu" has 1 keys`))
	g.Expect(member.Delete(cm)).To(Succeed())
	g.Eventually(out.String).Should(ContainSubstring(`ConfigMap default/a in cluster "default/eu" is gone`))
}
