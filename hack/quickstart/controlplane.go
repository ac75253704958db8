// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// startLimit is how long one program of a control plane may take to start.
	startLimit = time.Minute

	// startAttempts allows for another program taking a port in the moment
	// between its being found free and its being used.
	startAttempts = 3
)

// controlPlane is a kube-apiserver with an etcd of its own: a cluster without
// nodes and controllers.
type controlPlane struct {
	name       string
	kubeconfig string // path of an administrator's
	config     *rest.Config
	client     client.Client
	plane      *envtest.ControlPlane
}

// startControlPlane starts the programs of the folder assets and waits for the
// API. It does not return before they have started or ended, also where the
// context ends.
func startControlPlane(ctx context.Context, name, assets, dir string) (*controlPlane, error) {
	var errs []error
	for attempt := range startAttempts {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		home := filepath.Join(dir, fmt.Sprintf("%s-%d", name, attempt))
		plane, err := startPrograms(assets, home)
		if err != nil {
			errs = append(errs, fmt.Errorf("control plane %s: %w", name, err))
			continue
		}
		cp := &controlPlane{name: name, kubeconfig: filepath.Join(dir, name+".kubeconfig"), plane: plane}
		if err := cp.connect(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("control plane %s: %w", name, err), cp.Stop())
		}
		return cp, nil
	}
	return nil, errors.Join(errs...)
}

func startPrograms(assets, home string) (*envtest.ControlPlane, error) {
	certificates := filepath.Join(home, "certificates")
	if err := os.MkdirAll(certificates, 0o700); err != nil {
		return nil, err
	}
	plane := &envtest.ControlPlane{
		Etcd: &envtest.Etcd{
			Path:         filepath.Join(assets, "etcd"),
			DataDir:      filepath.Join(home, "etcd"),
			StartTimeout: startLimit,
			StopTimeout:  stopLimit,
		},
		APIServer: &envtest.APIServer{
			Path:         filepath.Join(assets, "kube-apiserver"),
			CertDir:      certificates,
			StartTimeout: startLimit,
			StopTimeout:  stopLimit,
		},
	}
	if err := plane.Start(); err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return plane, nil
}

// connect makes the administrator and waits for the namespaces which the API
// server creates.
func (cp *controlPlane) connect(ctx context.Context) error {
	admin, err := cp.plane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: -1})
	if err != nil {
		return err
	}
	cp.config = admin.Config()
	kubeconfig, err := admin.KubeConfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(cp.kubeconfig, kubeconfig, 0o600); err != nil {
		return err
	}

	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if cp.client, err = client.New(cp.config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startLimit, true, func(ctx context.Context) (bool, error) {
			return cp.client.Get(ctx, types.NamespacedName{Name: namespace}, &corev1.Namespace{}) == nil, nil
		})
		if err != nil {
			return fmt.Errorf("namespace %s does not appear: %w", namespace, err)
		}
	}
	return nil
}

// Create creates the objects in this order.
func (cp *controlPlane) Create(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if err := cp.client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s in %s: %w", object, object.GetName(), cp.name, err)
		}
	}
	return nil
}

// WriteKubeconfig writes a kubeconfig with the token, which only the user may
// read.
func (cp *controlPlane) WriteKubeconfig(path, token string) error {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[cp.name] = &clientcmdapi.Cluster{
		Server:                   cp.config.Host,
		CertificateAuthorityData: cp.config.CAData,
	}
	kubeconfig.AuthInfos[cp.name] = &clientcmdapi.AuthInfo{Token: token}
	kubeconfig.Contexts[cp.name] = &clientcmdapi.Context{Cluster: cp.name, AuthInfo: cp.name}
	kubeconfig.CurrentContext = cp.name
	return clientcmd.WriteToFile(*kubeconfig, path)
}

// Stop ends both programs and waits for them.
func (cp *controlPlane) Stop() error {
	if err := cp.plane.Stop(); err != nil {
		return fmt.Errorf("control plane %s: %w", cp.name, err)
	}
	return nil
}
