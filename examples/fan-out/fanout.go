// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

const (
	finalizer = "example.rollcall.dev/fan-out"
	label     = "example.rollcall.dev/rollout-uid" // of Deployments. An owner reference would be to an object of another cluster.
)

type (
	request = mcreconcile.Request
	queue   = workqueue.TypedRateLimitingInterface[request]
)

// fanOut has two kinds of requests for a Rollout. That of the hub selects members, and
// removes the finalizer. That of a member, the only one to write there, is for one Deployment.
// Both read the Rollout from the API server: an old one could lead to a Deployment that
// is never deleted.
type fanOut struct {
	mgr     mcmanager.Manager
	hub     cluster.Cluster
	engaged *clusters.Registry[cluster.Cluster]
}

// enqueue adds requests for what has changed in a Rollout.
func enqueue(q queue, before, after *Rollout) {
	req := request{Request: reconcile.Request{NamespacedName: client.ObjectKeyFromObject(after)}}
	changed := before == nil || before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
	if changed || len(before.Status.Clusters) != len(after.Status.Clusters) {
		q.Add(req)
	}
	for _, c := range after.Status.Clusters {
		if changed || before.cluster(c.Name) < 0 || c.Generation == 0 && before.Status.Clusters[before.cluster(c.Name)].Generation != 0 {
			q.Add(req.WithCluster(multicluster.ClusterName(c.Name)))
		}
	}
}

// requestsFor returns requests for all Rollouts in a cluster, "" is the hub.
func (f *fanOut) requestsFor(ctx context.Context, name multicluster.ClusterName) (requests []request) {
	var list RolloutList
	if err := f.hub.GetClient().List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list Rollouts")
	}
	for i := range list.Items {
		requests = append(requests, request{ClusterName: name, Request: reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}})
	}
	return requests
}

// ofRollout maps a Deployment of a member to the member's request.
func ofRollout(_ context.Context, object client.Object) []reconcile.Request {
	if object.GetLabels()[label] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
}

func (f *fanOut) Reconcile(ctx context.Context, req request) (ctrl.Result, error) {
	r := &Rollout{}
	if err := f.hub.GetAPIReader().Get(ctx, req.NamespacedName, r); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&r.Spec.ClusterSelector)
	if err != nil {
		return ctrl.Result{}, reconcile.TerminalError(fmt.Errorf("spec.clusterSelector: %w", err))
	}
	if req.ClusterName == mcmanager.LocalCluster {
		err = f.plan(ctx, r, selector)
	} else if r.cluster(string(req.ClusterName)) >= 0 { // otherwise nothing was written there, or it is gone
		err = f.write(ctx, req, r, selector)
	}
	return ctrl.Result{}, err
}

// selected reports whether a member should have the Deployment.
func (r *Rollout) selected(cl cluster.Cluster, selector labels.Selector) bool {
	profile, ok := fleet.ProfileFrom(cl)
	return ok && r.DeletionTimestamp == nil && selector.Matches(labels.Set(profile.Labels))
}

// plan adds members to the status, and removes those that have left the inventory.
func (f *fanOut) plan(ctx context.Context, r *Rollout, selector labels.Selector) error {
	before := r.DeepCopyObject().(*Rollout)
	if r.DeletionTimestamp == nil && controllerutil.AddFinalizer(r, finalizer) {
		if err := f.hub.GetClient().Patch(ctx, r, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
		before = r.DeepCopyObject().(*Rollout)
	}
	var errs []error
	r.Status.Clusters = slices.DeleteFunc(r.Status.Clusters, func(c ClusterStatus) bool {
		left, err := f.left(ctx, c.Name)
		errs = append(errs, err)
		return left
	})
	errs = append(errs, f.engaged.ForEach(func(name multicluster.ClusterName, cl cluster.Cluster) error {
		if r.selected(cl, selector) && r.cluster(string(name)) < 0 {
			r.Status.Clusters = append(r.Status.Clusters, ClusterStatus{Name: string(name)})
		}
		return nil
	}))
	if !equality.Semantic.DeepEqual(before.Status, r.Status) {
		errs = append(errs, f.hub.GetClient().Status().Update(ctx, r)) // a conflict is retried
	} else if r.DeletionTimestamp != nil && len(r.Status.Clusters) == 0 && controllerutil.RemoveFinalizer(r, finalizer) {
		errs = append(errs, client.IgnoreNotFound(f.hub.GetClient().Patch(ctx, r, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))))
	}
	return errors.Join(errs...)
}

// left reports whether a member has no profile any more. One that is down, or not yet
// connected by this process, has one.
func (f *fanOut) left(ctx context.Context, name string) (bool, error) {
	if _, err := f.mgr.GetCluster(ctx, multicluster.ClusterName(name)); err == nil {
		return false, nil
	}
	namespace, profile, _ := strings.Cut(name, "/")
	err := f.hub.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: profile}, &v1alpha1.ClusterProfile{})
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// write applies or deletes the Deployment in a member, and updates the status of the member.
func (f *fanOut) write(ctx context.Context, req request, r *Rollout, selector labels.Selector) error {
	cl, err := f.mgr.GetCluster(ctx, req.ClusterName)
	if err != nil {
		return err // of a member that is down: the request waits for it
	}
	have := &appsv1.Deployment{}
	err = cl.GetAPIReader().Get(ctx, req.NamespacedName, have)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	exists, own := err == nil, have.Labels[label] == string(r.UID)
	status := ClusterStatus{Name: string(req.ClusterName), Generation: r.Generation}
	switch {
	case r.selected(cl, selector) && exists && !own:
		err = errors.New("a Deployment of this name exists and is not of this Rollout")
	case r.selected(cl, selector):
		status.AvailableReplicas, err = f.apply(ctx, cl.GetClient(), r)
	case exists && own: // its deletion is an event
		return client.IgnoreNotFound(cl.GetClient().Delete(ctx, have, client.Preconditions(metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion})))
	default:
		return f.record(ctx, r, status.Name, nil)
	}
	if err != nil {
		status.Error, status.Generation = err.Error(), r.Status.Clusters[r.cluster(status.Name)].Generation
	}
	return errors.Join(err, f.record(ctx, r, status.Name, &status))
}

// apply applies the Deployment of a Rollout, and returns its available replicas.
func (f *fanOut) apply(ctx context.Context, c client.Client, r *Rollout) (int64, error) {
	var spec map[string]any
	if err := json.Unmarshal(r.Spec.Deployment.Raw, &spec); err != nil {
		return 0, reconcile.TerminalError(fmt.Errorf("spec.deployment: %w", err))
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	deployment.SetNamespace(r.Namespace)
	deployment.SetName(r.Name)
	deployment.SetLabels(map[string]string{label: string(r.UID)})
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(deployment), client.FieldOwner("fan-out"), client.ForceOwnership); err != nil {
		return 0, err
	}
	available, _, err := unstructured.NestedInt64(deployment.Object, "status", "availableReplicas")
	return available, err
}

// record replaces the status of a member, or removes it if the new one is nil. Other
// members are recorded at the same time.
func (f *fanOut) record(ctx context.Context, r *Rollout, name string, status *ClusterStatus) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		latest := &Rollout{}
		if err := f.hub.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(r), latest); err != nil {
			return client.IgnoreNotFound(err)
		}
		switch i := latest.cluster(name); {
		case i < 0 || latest.UID != r.UID || status != nil && latest.Status.Clusters[i] == *status:
			return nil
		case status == nil:
			latest.Status.Clusters = slices.Delete(latest.Status.Clusters, i, i+1)
		default:
			latest.Status.Clusters[i] = *status
		}
		return f.hub.GetClient().Status().Update(ctx, latest)
	})
}
