// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package realfleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// startLimit and stopLimit are how long one program of a control plane may
	// take to start and to stop.
	startLimit = time.Minute
	stopLimit  = 15 * time.Second

	// startAttempts is more than one because another program can take a port
	// after it was found to be free.
	startAttempts = 3
)

// ControlPlane is a kube-apiserver with its own etcd: a cluster without nodes and
// controllers.
type ControlPlane struct {
	Name       string
	Kubeconfig string        // path of the administrator's kubeconfig
	Config     *rest.Config  // of the administrator
	Client     client.Client // of the administrator, without a cache

	plane *envtest.ControlPlane
}

// StartControlPlane starts the programs in the folder assets and waits for the
// API. It returns only after they have started or ended, even if the context
// ends.
func StartControlPlane(ctx context.Context, name, assets, dir string) (*ControlPlane, error) {
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
		cp := &ControlPlane{Name: name, Kubeconfig: filepath.Join(dir, name+".kubeconfig"), plane: plane}
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

// connect creates the administrator and waits for the namespaces that the API
// server creates.
func (cp *ControlPlane) connect(ctx context.Context) error {
	admin, err := cp.plane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: -1})
	if err != nil {
		return err
	}
	cp.Config = admin.Config()
	kubeconfig, err := admin.KubeConfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(cp.Kubeconfig, kubeconfig, 0o600); err != nil {
		return err
	}

	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if cp.Client, err = client.New(cp.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startLimit, true, func(ctx context.Context) (bool, error) {
			return cp.Client.Get(ctx, types.NamespacedName{Name: namespace}, &corev1.Namespace{}) == nil, nil
		})
		if err != nil {
			return fmt.Errorf("waiting for namespace %s: %w", namespace, err)
		}
	}
	return nil
}

// Create creates the objects in the given order.
func (cp *ControlPlane) Create(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if err := cp.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s in %s: %w", object, object.GetName(), cp.Name, err)
		}
	}
	return nil
}

// CreateFromFile creates the objects of a YAML file.
func (cp *ControlPlane) CreateFromFile(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := cp.Create(ctx, object); err != nil {
			return err
		}
	}
}

// NewNetwork returns a forwarder to the API server.
func (cp *ControlPlane) NewNetwork() (*Forwarder, error) {
	server, err := url.Parse(cp.Config.Host)
	if err != nil {
		return nil, err
	}
	return NewForwarder(server.Host)
}

// WriteKubeconfig writes a kubeconfig with the token, readable only by the user.
func (cp *ControlPlane) WriteKubeconfig(path, token string) error {
	return clientcmd.WriteToFile(*cp.kubeconfig(cp.Config.Host, token), path)
}

func (cp *ControlPlane) kubeconfig(server, token string) *clientcmdapi.Config {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[cp.Name] = &clientcmdapi.Cluster{
		Server:                   server,
		CertificateAuthorityData: cp.Config.CAData,
	}
	kubeconfig.AuthInfos[cp.Name] = &clientcmdapi.AuthInfo{Token: token}
	kubeconfig.Contexts[cp.Name] = &clientcmdapi.Context{Cluster: cp.Name, AuthInfo: cp.Name}
	kubeconfig.CurrentContext = cp.Name
	return kubeconfig
}

// StopAPIServer stops only the API server.
func (cp *ControlPlane) StopAPIServer() error {
	return cp.plane.APIServer.Stop()
}

// StartAPIServer starts the API server again, at the same address.
func (cp *ControlPlane) StartAPIServer() error {
	return cp.plane.APIServer.Start()
}

// Stop stops both programs and waits for them.
func (cp *ControlPlane) Stop() error {
	if err := cp.plane.Stop(); err != nil {
		return fmt.Errorf("control plane %s: %w", cp.Name, err)
	}
	return nil
}
