// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/providers/internal/kubeconfigs"
)

const (
	// managerName is the cluster manager of the profiles.
	managerName = "cluster-api"

	// accessProvider is the name of a known plugin that reads kubeconfigs in Secrets: a
	// published profile can be used by programs with that plugin.
	accessProvider = "kubeconfig-secretreader"

	// secretSuffix and secretKey are where Cluster API keeps the kubeconfig of a cluster.
	secretSuffix = "-kubeconfig"
	secretKey    = "value"
)

// source is the fleet's source and its credential method: the objects of a management
// cluster that may not be known before Run.
type source struct {
	options  *Options
	resolver *kubeconfig.Resolver
	store    *kubeconfigs.Store // of kubeconfigs in watched Secrets
	recheck  func(inventory.Key)

	management atomic.Pointer[management]
	again      chan struct{} // receives after additions to asked

	mu      sync.Mutex // guards what follows
	objects map[inventory.Key]client.Object
	asked   map[inventory.Key]bool // by Reconcile
	client  client.Client          // for Options.GetSecret
}

// management is the management cluster.
type management struct {
	config *rest.Config
	scheme *runtime.Scheme
	order  []schema.GroupVersionKind
	kinds  kinds
}

func newSource(options *Options, resolver *kubeconfig.Resolver) *source {
	return &source{
		options: options, resolver: resolver, store: kubeconfigs.NewStore(resolver), again: make(chan struct{}, 1),
		objects: map[inventory.Key]client.Object{}, asked: map[inventory.Key]bool{},
	}
}

// setUp sets the management cluster unless it is set already. Options.Hub takes
// precedence over the config.
func (s *source) setUp(m *management) (err error) {
	if s.management.Load() != nil {
		return nil
	}
	m.config = cmp.Or(s.options.Hub, m.config)
	if m.config == nil {
		return errors.New("no management cluster: set Options.Hub or call SetupWithManager")
	}
	if m.order, m.kinds, err = versions(s.options.ObjectToWatch, m.scheme); err != nil {
		return err
	}
	s.management.CompareAndSwap(nil, m)
	return nil
}

// String names the source for logs.
func (s *source) String() string {
	if m := s.management.Load(); m != nil {
		return fmt.Sprintf("%s of %s in namespace %q", m.order[0].Kind, m.order[0].Group, s.options.Namespace)
	}
	return "objects of the management cluster"
}

// keyOf returns the key of the profile of an object.
func keyOf(namespace, name string) inventory.Key {
	return inventory.Key{Namespace: cmp.Or(namespace, metav1.NamespaceDefault), Name: name}
}

// object returns a copy of the last version of an object.
func (s *source) object(key inventory.Key) (client.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object := s.objects[key]; object != nil {
		return object.DeepCopyObject().(client.Object), nil
	}
	return nil, fmt.Errorf("%s was removed from the management cluster", key)
}

// set sets or removes the last version of an object.
func (s *source) set(key inventory.Key, object client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object == nil {
		delete(s.objects, key)
		return
	}
	s.objects[key] = object
}

// evaluateAgain evaluates a cluster again, as after a change.
func (s *source) evaluateAgain(key inventory.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[key] = true
	select {
	case s.again <- struct{}{}:
	default:
	}
}

// takeAsked returns the keys of evaluateAgain since the last call.
func (s *source) takeAsked() map[inventory.Key]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = map[inventory.Key]bool{}
	return asked
}

// Resolve implements credentials.Method.
func (s *source) Resolve(ctx context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	if s.options.GetSecret == nil {
		return s.store.Resolve(ctx, profile)
	}
	key := inventory.KeyOf(profile)
	object, err := s.object(key)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	managementClient := s.client
	s.mu.Unlock()
	content, err := s.options.GetSecret(ctx, managementClient, object)
	if err != nil {
		return nil, fmt.Errorf("GetSecret of %s: %w", key, err)
	}
	kc, err := currentContext(fmt.Sprintf("GetSecret of %s", key), content)
	if err != nil {
		return nil, err
	}
	return s.resolver.Access(key, kc, os.ReadFile)
}

// currentContext returns the current context of a kubeconfig.
func currentContext(origin string, content []byte) (*kubeconfig.Context, error) {
	parsed, err := kubeconfig.Parse(origin, "", content)
	if err != nil {
		return nil, err
	}
	return parsed.Context("")
}
