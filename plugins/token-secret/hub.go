// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	// requestTimeout limits one request. It is less than the plugin's 25 s.
	requestTimeout = 20 * time.Second

	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// codecs has the types of the two requests that the plugin sends.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(authenticationv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
}()

// hub reads Secrets.
type hub struct {
	client    rest.Interface
	namespace string // the plugin's own
}

// connectHub sends no request.
func connectHub(p *Plugin) (*hub, error) {
	config, namespace, err := hubConfig(p.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if namespace = cmp.Or(p.Namespace, namespace); namespace == "" {
		return nil, fmt.Errorf("%w: the plugin's own namespace is unknown, see --namespace", plugin.ErrUsage)
	}
	client, err := p.restClient(config)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	return &hub{client: client, namespace: namespace}, nil
}

// hubConfig returns the hub's configuration and its default namespace.
func hubConfig(kubeconfig string) (*rest.Config, string, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, "", fmt.Errorf("%w: not in a cluster: --kubeconfig must be given", plugin.ErrUsage)
		}
		if err != nil {
			return nil, "", fmt.Errorf("service account of the pod: %w", err)
		}
		namespace, err := os.ReadFile(podNamespaceFile)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, "", fmt.Errorf("namespace of the pod: %w", err)
		}
		return config, strings.TrimSpace(string(namespace)), nil
	}
	rules := clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	raw, err := rules.Load()
	if err != nil {
		return nil, "", fmt.Errorf("--kubeconfig: %w", err)
	}
	loader := clientcmd.NewDefaultClientConfig(*raw, nil)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	namespace, _, err := loader.Namespace() // "default" if the context has none
	if err != nil {
		return nil, "", fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	return config, namespace, nil
}

func (h *hub) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := h.client.Get().
		Namespace(namespace).
		Resource("secrets").
		Name(name).
		VersionedParams(&metav1.GetOptions{}, metav1.ParameterCodec).
		Do(ctx).
		Into(secret)
	return secret, err
}
