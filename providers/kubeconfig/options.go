// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
)

const (
	// DefaultKubeconfigSecretLabel is the default of Options.KubeconfigSecretLabel.
	DefaultKubeconfigSecretLabel = "sigs.k8s.io/multicluster-runtime-kubeconfig"

	// DefaultKubeconfigSecretKey is the default of Options.KubeconfigSecretKey.
	DefaultKubeconfigSecretKey = "kubeconfig"

	// DefaultControllerName is the default of Options.ControllerName.
	DefaultControllerName = "kubeconfig-provider"
)

// Options configure a Provider. The zero value is usable.
type Options struct {
	// Namespace has the Secrets. Defaults to the namespace of the Pod that this process
	// runs in, or "default" outside of a cluster.
	Namespace string

	// KubeconfigSecretLabel is the label whose value is "true" on the Secrets of
	// clusters. Defaults to DefaultKubeconfigSecretLabel.
	KubeconfigSecretLabel string

	// KubeconfigSecretKey is the key of the kubeconfig in a Secret. Defaults to
	// DefaultKubeconfigSecretKey.
	KubeconfigSecretKey string

	// ClusterOptions are applied before Connection.ClusterOptions.
	ClusterOptions []cluster.Option

	// RESTOptions are applied before Connection.RESTOptions. They must not change
	// fields that concern connections, which come from the kubeconfig.
	RESTOptions []func(cfg *rest.Config) error

	// ControllerName is the name of the provider in log lines. Defaults to
	// DefaultControllerName.
	ControllerName string

	// Hub is the management cluster. Defaults to the manager's local cluster.
	Hub *rest.Config

	// Kubeconfig defines what the kubeconfigs may do. By default they run no command and
	// read no file.
	Kubeconfig kubeconfig.Options

	// Connection configures how each cluster is connected and monitored.
	Connection fleet.ConnectionOptions
}

// namespaceFile has the namespace of a Pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func (o *Options) complete() error {
	o.KubeconfigSecretLabel = cmp.Or(o.KubeconfigSecretLabel, DefaultKubeconfigSecretLabel)
	o.KubeconfigSecretKey = cmp.Or(o.KubeconfigSecretKey, DefaultKubeconfigSecretKey)
	o.ControllerName = cmp.Or(o.ControllerName, DefaultControllerName)
	if o.Namespace == "" {
		text, _ := os.ReadFile(namespaceFile)
		o.Namespace = cmp.Or(strings.TrimSpace(string(text)), metav1.NamespaceDefault)
	}
	if problems := validation.IsQualifiedName(o.KubeconfigSecretLabel); len(problems) > 0 {
		return fmt.Errorf("invalid KubeconfigSecretLabel %q: %s", o.KubeconfigSecretLabel, strings.Join(problems, ", "))
	}
	return nil
}

// connection returns Connection with the options of the top level.
func (o *Options) connection() fleet.ConnectionOptions {
	connection := o.Connection
	connection.ClusterOptions = slices.Concat(o.ClusterOptions, connection.ClusterOptions)
	connection.RESTOptions = slices.Concat(o.RESTOptions, connection.RESTOptions)
	return connection
}
