// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

// clusterAPI has an object of Cluster API for each member, and its kubeconfig in a
// Secret, in a management cluster. It does what the controllers of Cluster API do.
type clusterAPI struct{ management }

func (c *clusterAPI) terms() terms {
	return terms{
		clusters: "a management cluster and two clusters",
		place:    "management cluster",
		entry:    "Cluster object",
		explanation: []string{
			"A Cluster object of Cluster API reports that its control plane is initialized. The kubeconfig",
			"is in a Secret, where Cluster API puts it. No other part of Cluster API runs here.",
		},
		touched:     "The updates changed only the status.",
		permissions: "It is configured only for the management cluster, where it can only read Clusters and Secrets:",
		programs:    []string{"./examples/cluster-api"},
		switches:    true,
	}
}

func (c *clusterAPI) setUp(ctx context.Context, r *report, q *quickstart) error {
	crd, err := clusterCRD(ctx, r, q.root)
	if err != nil {
		return err
	}
	if err := c.start(ctx, q, "examples/cluster-api/rbac.yaml"); err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{Paths: []string{crd}, ErrorIfPathMissing: true, MaxTime: waitLimit})
	if err != nil {
		return fmt.Errorf("installing the CRD of Clusters: %w", err)
	}
	return clusterv1.AddToScheme(c.Client.Scheme())
}

// clusterCRD returns the path of the CRD of Clusters, of the same version as the Go
// types. It is in a module that is not a dependency.
func clusterCRD(ctx context.Context, r *report, root string) (string, error) {
	const module = "sigs.k8s.io/cluster-api"
	version, err := goTool(ctx, r, root, "list", "-m", "-f", "{{.Version}}", module+"/api")
	if err != nil {
		return "", err
	}
	if _, err := goTool(ctx, r, root, "mod", "download", module+"@"+version); err != nil {
		return "", err
	}
	dir, err := moduleDir(ctx, r, root, module+"@"+version)
	return filepath.Join(dir, "core", "config", "crd", "bases", "cluster.x-k8s.io_clusters.yaml"), err
}

func (c *clusterAPI) flags(ctx context.Context) (flags, tokens []string, err error) {
	return c.login(ctx, metav1.NamespaceDefault, "cluster-api-controller")
}

func (c *clusterAPI) clusterName(m *realfleet.Member) string {
	return metav1.NamespaceDefault + "/" + m.Name
}

func (c *clusterAPI) add(ctx context.Context, m *realfleet.Member) (string, error) {
	content, err := m.TokenKubeconfig(m.Server())
	if err != nil {
		return "", err
	}
	secret := c.secret(m)
	secret.Type = clusterv1.ClusterSecretType
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: m.Name}
	secret.Data = map[string][]byte{clusterSecretKey: content}
	cluster := c.cluster(m)
	address, err := netip.ParseAddrPort(m.Network.Addr())
	if err != nil {
		return "", err
	}
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: address.Addr().String(), Port: int32(address.Port())}
	if err := c.Create(ctx, secret, cluster); err != nil {
		return "", err
	}
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	cluster.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ClusterControlPlaneAvailableCondition, Status: metav1.ConditionTrue,
		Reason: clusterv1.ClusterControlPlaneAvailableReason, LastTransitionTime: metav1.Now(),
	}}
	return "Cluster " + c.clusterName(m), c.Client.Status().Update(ctx, cluster)
}

// clusterSecretKey is the key of the kubeconfig in a Secret.
const clusterSecretKey = "value"

func (c *clusterAPI) cluster(m *realfleet.Member) *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: m.Name}}
}

func (c *clusterAPI) secret(m *realfleet.Member) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: m.Name + "-kubeconfig"}}
}

func (c *clusterAPI) setAccess(ctx context.Context, m *realfleet.Member, server string) error {
	return c.replaceKubeconfig(ctx, c.secret(m), clusterSecretKey, m, server)
}

func (c *clusterAPI) touch(ctx context.Context, m *realfleet.Member) error {
	cluster := c.cluster(m)
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
		return err
	}
	cluster.Status.Conditions[0].Message = "updated at " + time.Now().Format(time.RFC3339Nano)
	return c.Client.Status().Update(ctx, cluster)
}

// remove deletes the Cluster, and its Secret as the garbage collector would.
func (c *clusterAPI) remove(ctx context.Context, m *realfleet.Member) error {
	if err := c.Client.Delete(ctx, c.cluster(m)); err != nil {
		return err
	}
	return c.Client.Delete(ctx, c.secret(m))
}

func (c *clusterAPI) look() string {
	return "kubectl --kubeconfig " + c.Kubeconfig + " get clusters -A"
}
