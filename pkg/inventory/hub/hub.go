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

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/cluster-inventory-api/client/clientset/versioned"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Options say which profiles of the hub are read.
type Options struct {
	// Namespace is one namespace that is read, besides Namespaces.
	Namespace string

	// Namespaces are those that are read, each by a request of its own, so that
	// no right is needed in others. Defaults, together with Namespace, to all.
	Namespaces []string

	// LabelSelector is evaluated by the hub's API server: profiles that do not
	// match never reach this process. Defaults to everything.
	LabelSelector labels.Selector

	// FieldSelector is evaluated by the hub's API server as well. Of a
	// ClusterProfile's fields it knows metadata.name and metadata.namespace.
	// Defaults to everything.
	FieldSelector fields.Selector

	// Placement names a decision of a scheduler (KEP-5313). Only the clusters
	// that it has decided on are told of. Defaults to none: all are.
	Placement *Placement

	// TrustAnnotations leaves profiles the annotations with which sources speak
	// of them: inventory.AnnotationClusterName, AnnotationRenamedFrom and
	// AnnotationAlternates. They are removed otherwise: whoever may write a
	// profile in one namespace could take the name of a cluster of another. Set
	// it for a hub all of whose authors are trusted, such as one with published
	// profiles that are to keep the names of their source.
	TrustAnnotations bool

	// HTTPClient is used in place of one made from the rest.Config, so that
	// connections to the hub can be shared. Defaults to a client of its own.
	HTTPClient *http.Client
}

// Source reads the ClusterProfiles of a hub.
type Source struct {
	client     versioned.Interface
	metadata   metadata.Interface // for namespaces
	options    Options
	namespaces []string // at least one; [""] means all
	closeIdle  func()   // closes the connections that nobody uses
}

var _ inventory.Source = &Source{}

// New returns a source that reads the hub which the config leads to. It does
// not connect: Run does. Without a QPS in the config, requests are not
// throttled.
func New(config *rest.Config, options Options) (*Source, error) {
	if config == nil {
		return nil, errors.New("hub source: must specify a rest.Config of the hub")
	}
	if err := options.Placement.Validate(); err != nil {
		return nil, fmt.Errorf("hub source: %w", err)
	}
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS = -1
	}
	if config.Burst == 0 {
		config.Burst = rest.DefaultBurst // which clientsets do not do by themselves
	}
	httpClient, closeIdle := options.HTTPClient, func() {}
	if httpClient == nil {
		var err error
		if httpClient, closeIdle, err = newClient(config); err != nil {
			return nil, fmt.Errorf("hub source: %w", err)
		}
	}
	profiles, err := versioned.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("hub source: %w", err)
	}
	namespaces, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("hub source: %w", err)
	}
	return &Source{
		client: profiles, metadata: namespaces, options: options,
		namespaces: options.namespaces(), closeIdle: closeIdle,
	}, nil
}

// newClient returns a client, and what closes its idle connections, also beneath
// a WrapTransport that does not tell what it wraps.
func newClient(config *rest.Config) (*http.Client, func(), error) {
	var beneath http.RoundTripper
	config = rest.CopyConfig(config)
	config.WrapTransport = transport.Wrappers(func(rt http.RoundTripper) http.RoundTripper {
		beneath = rt
		return rt
	}, config.WrapTransport)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	return client, func() { utilnet.CloseIdleConnectionsFor(beneath) }, nil
}

// namespaces returns those that are read, each once; all are [""].
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
		text += " decided on by " + s.options.Placement.String()
	}
	return text
}

// Run implements inventory.Source. It fails only when it cannot be set up; a
// hub that does not answer is waited for, with the backoff of client-go's
// reflector (0.8 s to 30 s, with jitter).
func (s *Source) Run(ctx context.Context, sink inventory.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log.FromContext(ctx).Info("Reading the hub", "what", s.String())
	r := &reader{source: s, events: make(chan func(*view))}
	v := newView(log.FromContext(ctx), sink, &s.options)
	if err := r.start(ctx, v); err != nil {
		cancel()
		r.running.Wait()
		s.closeIdle()
		return fmt.Errorf("hub source: %w", err)
	}
	r.loop(ctx, v)
	r.running.Wait()
	s.closeIdle()
	return nil
}
