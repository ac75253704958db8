// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Aggregation keeps the health of all members of a hub in a ConfigMap of the hub: their
// states and ready nodes.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

func main() {
	if err := run(); err != nil {
		ctrl.Log.Error(err, "The controller has failed")
		os.Exit(1)
	}
}

func run() error {
	var credentialOptions credentials.Options
	credentialOptions.AddFlags(flag.CommandLine)
	namespace := flag.String("namespace", "default", "`namespace` of the ConfigMap in the hub")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	} else if credentialOptions.ProviderFile == "" {
		return errors.New("--clusterprofile-provider-file must be given")
	}
	resolver, err := credentials.New(credentialOptions)
	if err != nil {
		return err
	}
	defer resolver.Close()
	mgr, err := newManager(ctrl.GetConfigOrDie(), clusterinventoryapi.Options{Credentials: resolver}, *namespace, 10*time.Second, mcmanager.Options{})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// member is what the ConfigMap has of a member.
type member struct {
	Name  string      `json:"name"`
	State fleet.State `json:"state"`
	Error string      `json:"error,omitempty"`
	Nodes string      `json:"nodes,omitempty"` // that are ready, such as "2 of 3"; "" if not known
}

func newManager(hub *rest.Config, of clusterinventoryapi.Options, namespace string, resync time.Duration, options mcmanager.Options) (mcmanager.Manager, error) {
	provider, err := clusterinventoryapi.New(of)
	if err != nil {
		return nil, err
	}
	mgr, err := mcmanager.New(hub, provider, options)
	if err != nil {
		return nil, err
	}
	all := []mcreconcile.Request{{Request: reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "fleet-health"}}}}
	health := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return ready(e.ObjectOld) != ready(e.ObjectNew) }} // no heartbeats
	return mgr, mcbuilder.ControllerManagedBy(mgr).Named("aggregation").
		WatchesRawSource(source.TypedFunc[mcreconcile.Request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
			q.Add(all[0]) // also if there are no members
			return nil
		})).
		WatchesRawSource(mcsource.TypedClusterLifecycle(func(context.Context, mcsource.ClusterEvent) []mcreconcile.Request { return all })).
		Watches(&corev1.Node{}, func(multicluster.ClusterName, cluster.Cluster) mchandler.EventHandler {
			return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(func(context.Context, client.Object) []mcreconcile.Request { return all })
		}, mcbuilder.WithPredicates(health)).
		Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			members, healthy := []member{}, 0
			for _, status := range provider.Status() {
				m := member{Name: string(status.Name), State: status.State, Error: status.LastError}
				if cl, err := mgr.GetCluster(ctx, status.Name); err == nil && status.State == fleet.Ready { // otherwise the cache is old
					healthy++
					if m.Nodes, err = count(ctx, cl.GetClient()); err != nil {
						m.Error = err.Error()
					}
				}
				members = append(members, m)
			}
			slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.Name, b.Name) })
			text, err := json.Marshal(members)
			if err != nil {
				return ctrl.Result{}, err
			}
			data := map[string]string{"members": string(text), "ready": fmt.Sprintf("%d of %d", healthy, len(members))}
			// A change of state is no event, unless the cluster is engaged or disengaged.
			return ctrl.Result{RequeueAfter: resync}, mgr.GetLocalManager().GetClient().Apply(ctx,
				corev1ac.ConfigMap(req.Name, req.Namespace).WithData(data), client.FieldOwner("aggregation"), client.ForceOwnership)
		}))
}

// count reads the cache of a member. While that is not filled, it fails after a second.
func count(ctx context.Context, c client.Client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var list corev1.NodeList
	if err := c.List(ctx, &list); err != nil {
		return "", err
	}
	healthy := 0
	for i := range list.Items {
		if ready(&list.Items[i]) {
			healthy++
		}
	}
	return fmt.Sprintf("%d of %d", healthy, len(list.Items)), nil
}

func ready(object client.Object) bool {
	node, ok := object.(*corev1.Node)
	return ok && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
