// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/cluster-inventory-api/client/clientset/versioned"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Options select the profiles of the hub. Without a Cache, Namespace or Namespaces is
// required: one namespace is one inventory (KEP-4322).
type Options struct {
	// Namespace is one namespace to read, in addition to Namespaces.
	Namespace string

	// Namespaces are the namespaces to read, each with a request of its own, so that
	// no permission is needed in others. metav1.NamespaceAll stands for all.
	Namespaces []string

	// LabelSelector is evaluated by the hub's API server: other profiles never
	// reach this process. Defaults to all.
	LabelSelector labels.Selector

	// FieldSelector is evaluated by the hub's API server. ClusterProfiles support
	// metadata.name and metadata.namespace. Defaults to all.
	FieldSelector fields.Selector

	// Placement names a scheduler's decision (KEP-5313) that selects clusters.
	// Defaults to none: all clusters.
	Placement *Placement

	// Cache is a cache of the hub, such as that of a manager, whose informer of
	// ClusterProfiles is used instead of an own watch, with its namespaces, selectors
	// and transformation. It is ignored if Namespace, Namespaces, LabelSelector or
	// FieldSelector is set. The caller starts it. That the hub was restored from a
	// backup is noticed if the cache notices it: one of controller-runtime does not.
	// Placements and the labels of namespaces are read without it. Defaults to none.
	Cache ctrlcache.Informers

	// TrustAnnotations keeps the annotations inventory.AnnotationClusterName and
	// AnnotationRenamedFrom of profiles, which are removed otherwise: the author of a profile in one namespace could take the name of a
	// cluster in another. Set it if all authors of the hub are trusted, such as for
	// published profiles that keep the names of their source.
	TrustAnnotations bool
}

// Source reads the ClusterProfiles of a hub.
type Source struct {
	client     versioned.Interface
	v1alpha2   rest.Interface
	metadata   metadata.Interface
	options    Options
	namespaces []string          // at least one; [""] means all
	transport  http.RoundTripper // has the connections
	status     atomic.Pointer[PlacementStatus]
}

var _ inventory.Source = &Source{}

// New returns a source that reads the hub of the config. It does not connect
// before Run. Without a QPS in the config, requests are not throttled.
func New(config *rest.Config, options Options) (*Source, error) {
	if config == nil {
		return nil, errors.New("hub source: must specify the rest.Config of the hub")
	}
	source, err := newSource(rest.CopyConfig(config), options)
	if err != nil {
		return nil, fmt.Errorf("hub source: %w", err)
	}
	return source, nil
}

func newSource(config *rest.Config, options Options) (*Source, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if config.QPS == 0 {
		config.QPS = -1
	}
	if config.Burst == 0 {
		config.Burst = rest.DefaultBurst // clientsets require it
	}
	s := &Source{options: options, namespaces: options.namespaces()}
	// Idle connections are closed below the config's wrappers, which need not
	// implement utilnet.RoundTripperWrapper.
	config.WrapTransport = transport.Wrappers(func(rt http.RoundTripper) http.RoundTripper {
		s.transport = rt
		return rt
	}, config.WrapTransport)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	if s.client, err = versioned.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	if s.v1alpha2, err = newV1alpha2RESTClient(config, client); err != nil {
		return nil, err
	}
	if s.metadata, err = metadata.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	return s, nil
}

// Validate returns an error if a field is invalid, or if neither the namespaces nor a
// cache decides which namespaces are read.
func (o *Options) Validate() error {
	if err := o.Placement.Validate(); err != nil {
		return err
	}
	if o.usesCache() || o.Namespace != "" || len(o.Namespaces) > 0 {
		return nil
	}
	if o.Cache != nil {
		return errors.New("must specify Namespaces with a LabelSelector or FieldSelector, as the cache is not used then: " + allNamespaces)
	}
	return errors.New("must specify Namespaces: " + allNamespaces)
}

const allNamespaces = "one namespace is one inventory; to read all, set it to []string{metav1.NamespaceAll}"

// namespaces returns the namespaces to read, each once, or [""] for all.
func (o *Options) namespaces() []string {
	names := slices.Clone(o.Namespaces)
	if o.Namespace != "" {
		names = append(names, o.Namespace)
	}
	if len(names) == 0 || slices.Contains(names, "") {
		return []string{""}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// String names the source for logs.
func (s *Source) String() string {
	text := "ClusterProfiles of the hub"
	if s.options.usesCache() {
		text += " in the manager's cache"
	}
	if s.namespaces[0] != "" {
		text += fmt.Sprintf(" in namespace %q", strings.Join(s.namespaces, ", "))
	}
	if selector := s.options.LabelSelector; selector != nil && !selector.Empty() {
		text += fmt.Sprintf(" with labels %q", selector)
	}
	if selector := s.options.FieldSelector; selector != nil && !selector.Empty() {
		text += fmt.Sprintf(" with fields %q", selector)
	}
	if s.options.Placement != nil {
		text += " selected by " + s.options.Placement.String()
	}
	return text
}

// Run implements inventory.Source. It fails only if it cannot be set up. A hub
// that does not respond is retried with the backoff of client-go's reflector (0.8 s
// to 30 s, with jitter).
func (s *Source) Run(ctx context.Context, sink inventory.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log.FromContext(ctx).Info("Reading the hub", "source", s.String())
	r := &reader{source: s, events: make(chan func(*view)), profileVersion: newVersionLog(profileResource)}
	v := newView(log.FromContext(ctx), sink, &s.options)
	if s.options.Placement != nil {
		v.missing = newMissing(&s.options, s.setPlacementStatus)
		defer s.setPlacementStatus(PlacementStatus{})
	}
	err := r.start(ctx, v)
	if err == nil {
		r.loop(ctx, v)
	}
	cancel()
	r.running.Wait()
	utilnet.CloseIdleConnectionsFor(s.transport)
	if err != nil {
		return fmt.Errorf("hub source: %w", err)
	}
	return nil
}
