// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objects returns the objects of the registration in the member, in the order in which
// to delete them.
func (c *cluster) objects(ctx context.Context, r registration) ([]client.Object, error) {
	var all []client.Object
	for _, list := range []client.ObjectList{
		&rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}, &corev1.ServiceAccountList{},
		&rbacv1.ClusterRoleList{}, &rbacv1.RoleList{},
	} {
		if err := c.List(ctx, list, r.selector()); err != nil {
			return nil, fmt.Errorf("%s: looking for objects of %s: %w", c.name, r, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			all = append(all, item.(client.Object))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// secrets returns the Secrets of the registration in the namespaces; "" is none.
func (c *cluster) secrets(ctx context.Context, r registration, namespaces ...string) ([]*corev1.Secret, error) {
	var secrets []*corev1.Secret
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		if namespace == "" {
			continue
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.objectName()}}
		err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, c.wrap(secret, err)
		case r.owns(secret):
			secrets = append(secrets, secret)
		}
	}
	return secrets, nil
}

// removable returns those of the namespaces of the objects that Register has created
// and that have nothing else in them. Others of which that is unknown, as an API group
// does not respond, are named in kept.
func (c *cluster) removable(ctx context.Context, r registration, objects []client.Object) (namespaces []*corev1.Namespace, kept []string, err error) {
	names := map[string]bool{}
	for _, object := range objects {
		if object.GetNamespace() != "" {
			names[object.GetNamespace()] = true
		}
	}
	for name := range names {
		namespace := &corev1.Namespace{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return nil, nil, fmt.Errorf("%s: namespace %s: %w", c.name, name, err)
		}
		if namespace.Labels[LabelManagedBy] != Manager || namespace.DeletionTimestamp != nil {
			continue
		}
		empty, err := c.isEmpty(ctx, r, name)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, nil, err
		case err != nil:
			kept = append(kept, fmt.Sprintf("%s: Namespace %s, as it is unknown what is in it: %v", c.name, name, err))
		case empty:
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces, kept, nil
}

// isEmpty reports whether the namespace has nothing but objects of the registration
// and those that Kubernetes creates in each namespace.
func (c *cluster) isEmpty(ctx context.Context, r registration, namespace string) (bool, error) {
	disco, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return false, err
	}
	lists, err := disco.ServerPreferredNamespacedResourcesWithContext(ctx)
	if err != nil {
		return false, err
	}
	reader, err := metadata.NewForConfig(c.config)
	if err != nil {
		return false, err
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return false, err
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Name == "events" || version.Group == "metrics.k8s.io" {
				continue
			}
			found, err := reader.Resource(version.WithResource(resource.Name)).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for i := range found.Items {
				if item := &found.Items[i]; !isDefault(resource.Name, item.Name) && item.Labels[LabelRegistration] != r.id {
					return false, nil
				}
			}
		}
	}
	return true, nil
}

// isDefault reports whether Kubernetes creates the object in each namespace.
func isDefault(resource, name string) bool {
	return resource == "serviceaccounts" && name == "default" || resource == "configmaps" && name == "kube-root-ca.crt"
}
