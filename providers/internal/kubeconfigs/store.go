// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfigs turns the kubeconfigs that a provider finds into profiles, and
// connects their clusters.
package kubeconfigs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Cluster is what a provider has found of a cluster.
type Cluster struct {
	// Profile has the name, the labels, the version and the conditions of the profile.
	// The condition Joined is added.
	Profile inventory.Synthetic
	// AccessProvider and Reference are the name of the access provider, and where the
	// kubeconfig is: the config of a credential plugin.
	AccessProvider string
	Reference      map[string]string
	// Context is the kubeconfig's, nil if Err is set.
	Context *kubeconfig.Context
	// Err is why the kubeconfig cannot be used.
	Err error
}

// Reasons of the condition Joined.
const (
	reasonFound   = "KubeconfigFound"
	reasonInvalid = "KubeconfigInvalid"
)

// Store has the clusters of a provider. It is the credential method of its fleet.
type Store struct {
	resolver *kubeconfig.Resolver

	mu      sync.Mutex // guards entries; not held across calls of the resolver
	entries map[inventory.Key]*entry
}

// entry does not change.
type entry struct {
	profile     *inventory.Profile
	context     *kubeconfig.Context
	files       map[string][]byte // named by the context
	fingerprint string
	err         error // why the kubeconfig cannot be used, or nil
}

var _ credentials.Method = &Store{}

// NewStore returns an empty Store.
func NewStore(resolver *kubeconfig.Resolver) *Store {
	return &Store{resolver: resolver, entries: map[inventory.Key]*entry{}}
}

// Put sends the profile of a cluster to the sink, and calls recheck if the cluster is
// known and its connection has changed. It does nothing if the Context is the last one and
// the files that it names are the same. Files are read by the function. A cluster whose
// kubeconfig cannot be used keeps its last profile: its connection stays in use, and
// Resolve returns the error.
func (s *Store) Put(sink inventory.Sink, cluster Cluster, read kubeconfig.ReadFile, recheck func(inventory.Key)) error {
	key := inventory.Key{Namespace: cluster.Profile.Namespace, Name: cluster.Profile.Name}
	last := s.entry(key)
	if last != nil && last.context != nil && last.context == cluster.Context && last.hasFiles(read) {
		return nil
	}
	next, err := s.newEntry(key, cluster, last, read)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.entries[key] = next
	s.mu.Unlock()
	sink.Put(next.profile)
	if last != nil && (last.fingerprint != next.fingerprint || text(last.err) != text(next.err)) {
		recheck(key)
	}
	return nil
}

// Remove removes a cluster.
func (s *Store) Remove(sink inventory.Sink, key inventory.Key) {
	s.mu.Lock()
	delete(s.entries, key)
	s.mu.Unlock()
	sink.Remove(key)
}

// Keys returns the keys of all clusters, in no order.
func (s *Store) Keys() []inventory.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]inventory.Key, 0, len(s.entries))
	for key := range s.entries {
		keys = append(keys, key)
	}
	return keys
}

// Resolve implements credentials.Method.
func (s *Store) Resolve(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	key := inventory.KeyOf(profile)
	e := s.entry(key)
	switch {
	case e == nil:
		return nil, fmt.Errorf("the kubeconfig of profile %s was removed", key)
	case e.err != nil:
		return nil, e.err
	}
	return s.resolver.Access(key, e.context, e.read)
}

func (s *Store) entry(key inventory.Key) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[key]
}

func (s *Store) newEntry(key inventory.Key, cluster Cluster, last *entry, read kubeconfig.ReadFile) (*entry, error) {
	e := &entry{context: cluster.Context, err: cluster.Err, files: map[string][]byte{}}
	synthetic := cluster.Profile
	if last != nil {
		synthetic.Previous = last.profile
	}
	if e.err == nil {
		e.err = s.connect(e, key, &synthetic, &cluster, read)
	}
	joined := metav1.Condition{Type: inventory.ConditionJoined, Status: metav1.ConditionTrue, Reason: reasonFound}
	synthetic.Conditions = append(slices.Clone(cluster.Profile.Conditions), joined)
	var err error
	if e.err == nil {
		if e.profile, err = inventory.Synthesize(synthetic); err == nil {
			return e, nil
		}
		e.err = err // an invalid CA, for example
	}
	if last != nil {
		e.fingerprint = last.fingerprint
		synthetic.AccessProviders = last.profile.Status.AccessProviders
	} else {
		synthetic.AccessProviders = nil
	}
	if len(synthetic.AccessProviders) == 0 {
		joined.Status, joined.Reason, joined.Message = metav1.ConditionFalse, reasonInvalid, e.err.Error()
		synthetic.Conditions = append(slices.Clone(cluster.Profile.Conditions), joined)
	}
	e.profile, err = inventory.Synthesize(synthetic)
	return e, err
}

// connect sets what an Access for the context shows.
func (s *Store) connect(e *entry, key inventory.Key, synthetic *inventory.Synthetic, cluster *Cluster, read kubeconfig.ReadFile) error {
	for _, path := range cluster.Context.Files() {
		if content, err := read(path); err == nil {
			e.files[path] = content
		}
	}
	access, err := s.resolver.Access(key, cluster.Context, read)
	if err != nil {
		return err
	}
	defer access.Release()
	e.fingerprint = access.Fingerprint()
	endpoint, err := s.resolver.Cluster(cluster.Context, read)
	if err != nil {
		return err
	}
	reference, err := json.Marshal(cluster.Reference)
	if err != nil {
		return err
	}
	endpoint.Extensions = []clientcmdv1.NamedExtension{{
		Name: "client.authentication.k8s.io/exec", Extension: runtime.RawExtension{Raw: reference},
	}}
	synthetic.AccessProviders = []inventory.AccessProvider{{Name: cluster.AccessProvider, Cluster: endpoint}}
	return nil
}

// hasFiles reports whether the files that the context names are as they were.
func (e *entry) hasFiles(read kubeconfig.ReadFile) bool {
	for _, path := range e.context.Files() {
		content, err := read(path)
		known, ok := e.files[path]
		if (err == nil) != ok || !bytes.Equal(content, known) {
			return false
		}
	}
	return true
}

// read returns a file as it was when the entry was made.
func (e *entry) read(path string) ([]byte, error) {
	if content, ok := e.files[path]; ok {
		return content, nil
	}
	return nil, fmt.Errorf("%s cannot be read", path)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
