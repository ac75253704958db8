// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startTimeout is how long an API server may take to start.
const startTimeout = time.Minute

// node is a container that looks to kind like a cluster with one node.
type node struct {
	t         *testing.T
	name      string // of the container
	authority *authority
	port      int
	client    client.Client
	config    *rest.Config
}

// create creates a cluster as kind does, and starts it. It is removed at the end.
func create(t *testing.T, image, cluster string) *node {
	t.Helper()
	n := &node{t: t, name: cluster + "-control-plane", authority: newAuthority(t), port: freePort(t)}
	docker(t, nil, "create", "--name", n.name, "--hostname", n.name,
		"--label", "io.x-k8s.kind.cluster="+cluster, "--label", "io.x-k8s.kind.role=control-plane",
		"--publish", fmt.Sprintf("127.0.0.1:%d:6443/tcp", n.port), image)
	t.Cleanup(n.remove)
	certificate, key := n.authority.server(n.name)
	var files bytes.Buffer
	archive := newArchive(&files)
	archive.add("etc/kubernetes/pki/ca.crt", 0o644, n.authority.pem)
	archive.add("etc/kubernetes/pki/apiserver.crt", 0o644, certificate)
	archive.add("etc/kubernetes/pki/apiserver.key", 0o600, key)
	if err := archive.close(); err != nil {
		t.Fatal(err)
	}
	docker(t, &files, "cp", "-", n.name+":/")
	n.writeKubeconfig()
	n.start()
	return n
}

// writeKubeconfig writes the admin.conf as kubeadm does, with a new client certificate.
func (n *node) writeKubeconfig() {
	n.t.Helper()
	certificate, key := n.authority.client()
	n.config = &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", n.port),
		TLSClientConfig: rest.TLSClientConfig{CAData: n.authority.pem, CertData: certificate, KeyData: key},
	}
	content := n.kubeconfig("https://" + n.name + ":6443")
	var files bytes.Buffer
	archive := newArchive(&files)
	archive.add("etc/kubernetes/admin.conf", 0o600, content)
	if err := archive.close(); err != nil {
		n.t.Fatal(err)
	}
	docker(n.t, &files, "cp", "-", n.name+":/")
}

// kubeconfig returns a kubeconfig for a server.
func (n *node) kubeconfig(server string) []byte {
	n.t.Helper()
	content, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "kubernetes-admin@kubernetes",
		Contexts:       map[string]*clientcmdapi.Context{"kubernetes-admin@kubernetes": {Cluster: "kubernetes", AuthInfo: "kubernetes-admin"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"kubernetes": {Server: server, CertificateAuthorityData: n.config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"kubernetes-admin": {
			ClientCertificateData: n.config.CertData, ClientKeyData: n.config.KeyData,
		}},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return content
}

// start starts the container, and waits until its API server responds.
func (n *node) start() {
	n.t.Helper()
	docker(n.t, nil, "start", n.name)
	var err error
	if n.client, err = client.New(n.config, client.Options{}); err != nil {
		n.t.Fatal(err)
	}
	n.await("the API server responds", func(ctx context.Context) error {
		return n.client.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{})
	})
}

// stop stops the container, as docker stop.
func (n *node) stop() {
	n.t.Helper()
	docker(n.t, nil, "stop", "-t", "5", n.name)
}

// remove removes the container. It may not exist.
func (n *node) remove() {
	n.t.Helper()
	if n.t.Failed() {
		logs, _ := dockerFails(context.Background(), nil, "logs", "--tail", "20", n.name)
		n.t.Logf("container %s: %s", n.name, logs)
	}
	_, err := dockerFails(context.Background(), nil, "rm", "-f", "-v", n.name)
	if err != nil && !strings.Contains(err.Error(), "No such container") {
		n.t.Error(err)
	}
}

// createConfigMap creates a ConfigMap in the namespace default.
func (n *node) createConfigMap(name string) {
	n.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := n.client.Create(n.t.Context(), cm); err != nil {
		n.t.Fatal(err)
	}
}

// uid returns the UID of the namespace kube-system.
func (n *node) uid() string {
	n.t.Helper()
	namespace := &corev1.Namespace{}
	n.await("kube-system exists", func(ctx context.Context) error {
		return n.client.Get(ctx, client.ObjectKey{Name: "kube-system"}, namespace)
	})
	return string(namespace.UID)
}

// await waits until the function succeeds.
func (n *node) await(what string, do func(context.Context) error) {
	n.t.Helper()
	deadline := time.Now().Add(startTimeout)
	for {
		ctx, cancel := context.WithTimeout(n.t.Context(), 5*time.Second)
		err := do(ctx)
		cancel()
		switch {
		case err == nil:
			return
		case time.Now().After(deadline):
			n.t.Fatalf("%s: timed out waiting until %s: %v", n.name, what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
