// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// read is what is listed in the hub for a kind of inventory, in the first version that is
// served.
type read struct {
	versions []schema.GroupVersionResource
	selector string
	missing  string // what to do if no version is served
}

func (f *Flags) read() read {
	switch f.From {
	case Kubeconfig:
		return read{versions: []schema.GroupVersionResource{{Version: "v1", Resource: "secrets"}}, selector: f.secretLabel + "=true"}
	case ClusterAPI:
		group := schema.GroupResource{Group: "cluster.x-k8s.io", Resource: "clusters"}
		return read{
			versions: []schema.GroupVersionResource{group.WithVersion("v1beta2"), group.WithVersion("v1beta1")},
			missing:  "the hub has no Clusters of cluster.x-k8s.io: install Cluster API, or choose another --context or --from",
		}
	default:
		group := schema.GroupResource{Group: "multicluster.x-k8s.io", Resource: "clusterprofiles"}
		return read{
			versions: []schema.GroupVersionResource{group.WithVersion("v1alpha1"), group.WithVersion("v1alpha2")},
			missing:  "the hub has no ClusterProfiles: install the CRD of the Cluster Inventory API, or choose another --context or --from",
		}
	}
}

// checkHub reads one object, so that what is wrong with the hub is an error and not an
// empty inventory.
func checkHub(ctx context.Context, config *rest.Config, namespace string, flags *Flags) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("configuration for the hub: %w", err)
	}
	read := flags.read()
	for _, version := range read.versions {
		_, err = client.Resource(version).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1, LabelSelector: read.selector})
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s (hub %s)", read.missing, config.Host)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return fmt.Errorf("hub %s: %w", config.Host, err)
	}
	return fmt.Errorf("hub %s does not respond: %w", config.Host, err)
}
