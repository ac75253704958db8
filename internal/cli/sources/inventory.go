// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	clusterapi "github.com/rollcall-dev/rollcall/providers/cluster-api"
	"github.com/rollcall-dev/rollcall/providers/file"
	"github.com/rollcall-dev/rollcall/providers/kind"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

// Inventory is an inventory that was opened. Close it.
type Inventory struct {
	// Source lists and watches the profiles that --selector selects.
	Source inventory.Source
	// HubConfig is the configuration of the hub, nil if there is none.
	HubConfig *rest.Config
	// Namespace is that of the profiles in the hub, "" for all.
	Namespace string

	flags   *Flags
	method  credentials.Method // nil for a hub: made when needed
	options *credentials.Options
	closers []func()
}

// Open opens the inventory. It connects to no cluster but the hub, which must respond.
func (f *Flags) Open(ctx context.Context, env *command.Env) (*Inventory, error) {
	selector, err := f.validate()
	if err != nil {
		return nil, err
	}
	i := &Inventory{flags: f, options: &f.Credentials}
	if f.UsesHub() {
		if err := i.openHub(ctx, env); err != nil {
			return nil, err
		}
	} else if f.AllNamespaces {
		return nil, command.Usagef("--all-namespaces needs a hub: it does not go with --from=%s", f.From)
	}
	if err := i.openSource(selector); err != nil {
		return nil, err
	}
	return i, nil
}

func (i *Inventory) openHub(ctx context.Context, env *command.Env) error {
	config, err := env.HubConfig()
	if err != nil {
		return err
	}
	if i.Namespace = i.flags.Namespace; i.Namespace == "" && !i.flags.AllNamespaces {
		if i.Namespace, err = env.Namespace(); err != nil {
			return err
		}
	}
	i.HubConfig = config
	ctx, cancel := context.WithTimeout(ctx, i.flags.ListTimeout)
	defer cancel()
	return checkHub(ctx, config, i.Namespace, i.flags)
}

func (i *Inventory) openSource(selector labels.Selector) error {
	var provider interface {
		Source() inventory.Source
		Credentials() credentials.Method
	}
	f := i.flags
	var err error
	switch f.From {
	case Hub:
		options := hub.Options{Namespaces: []string{i.Namespace}, LabelSelector: selector}
		if f.ProfileName != "" {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, f.ProfileName)
		}
		i.Source, err = hub.New(i.HubConfig, options)
		return err
	case Kubeconfig:
		if f.AllNamespaces {
			return command.Usagef("--from=kubeconfig reads the Secrets of one namespace: set --namespace instead of --all-namespaces")
		}
		options := kubeconfig.Options{Namespace: i.Namespace, KubeconfigSecretLabel: f.secretLabel, KubeconfigSecretKey: f.secretKey, Hub: i.HubConfig}
		options.Kubeconfig.Exec = f.exec()
		provider = kubeconfig.New(options)
	case ClusterAPI:
		options := clusterapi.Options{Namespace: i.Namespace, Hub: i.HubConfig}
		options.Kubeconfig.Exec = f.exec()
		provider = clusterapi.New(options)
	case File:
		// The paths are part of the names, which must be the same in any folder.
		options := file.Options{Exec: f.exec()}
		if options.KubeconfigFiles, err = absolute(f.files); err != nil {
			return err
		}
		if options.KubeconfigDirs, err = absolute(f.dirs); err != nil {
			return err
		}
		if provider, err = file.New(options); err != nil {
			return err
		}
	case Kind:
		provider = kind.New(kind.Options{Prefix: f.prefix})
	}
	i.method = provider.Credentials()
	i.Source = inventory.Select(provider.Source(), func(p *inventory.Profile) bool {
		return selector.Matches(labels.Set(p.Labels))
	})
	return nil
}

// Credentials returns the credential method of the inventory. For a hub it reads the
// provider file.
func (i *Inventory) Credentials() (credentials.Method, error) {
	if i.method != nil {
		return i.method, nil
	}
	if i.options.ProviderFile == "" {
		return nil, command.Usagef("no provider file: set --clusterprofile-provider-file or %s to the file that defines the credential plugins", providerFileVariable)
	}
	resolver, err := credentials.New(*i.options)
	if err != nil {
		return nil, err
	}
	i.method = resolver
	i.closers = append(i.closers, resolver.Close)
	return resolver, nil
}

// Close releases what the inventory holds.
func (i *Inventory) Close() {
	for _, closer := range i.closers {
		closer()
	}
}

// Profiles lists the inventory once, in the order of namespaces and names.
func (i *Inventory) Profiles(ctx context.Context) ([]*inventory.Profile, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timeout, stop := context.WithTimeout(ctx, i.flags.ListTimeout)
	defer stop()
	list := &listing{profiles: map[inventory.Key]*inventory.Profile{}, synced: make(chan struct{})}
	var lastError loggedError
	ended := make(chan struct{})
	var runErr error // valid once ended is closed
	go func() {
		defer close(ended)
		runErr = i.Source.Run(lastError.into(ctx), list)
	}()
	select {
	case <-list.synced:
		cancel()
		<-ended
		return list.sorted(), nil
	case <-ended:
		if runErr == nil {
			runErr = ctx.Err()
		}
		return nil, runErr
	case <-timeout.Done():
	}
	cancel()
	<-ended
	if errors.Is(timeout.Err(), context.Canceled) {
		return nil, timeout.Err()
	}
	return nil, fmt.Errorf("the inventory was not listed within %s%s", i.flags.ListTimeout, lastError.suffix())
}

// Find returns the profiles with these names, in that order: "name", "namespace/name" or
// the name of the cluster. Without names it returns all. Names that match none or several
// profiles are errors.
func (i *Inventory) Find(ctx context.Context, names ...string) ([]*inventory.Profile, error) {
	all, err := i.Profiles(ctx)
	if err != nil || len(names) == 0 {
		return all, err
	}
	return Match(all, names...)
}

// Match returns the profiles with these names; see Inventory.Find.
func Match(all []*inventory.Profile, names ...string) ([]*inventory.Profile, error) {
	found := make([]*inventory.Profile, 0, len(names))
	for _, name := range names {
		matching := matching(all, name)
		switch len(matching) {
		case 1:
			if !slices.Contains(found, matching[0]) {
				found = append(found, matching[0])
			}
		case 0:
			return nil, fmt.Errorf("no profile %q in the inventory: see 'mc-credential list'", name)
		default:
			keys := make([]string, len(matching))
			for i, profile := range matching {
				keys[i] = inventory.KeyOf(profile).String()
			}
			return nil, fmt.Errorf("%q stands for several profiles: name one of %s", name, strings.Join(keys, ", "))
		}
	}
	return found, nil
}

func matching(all []*inventory.Profile, name string) []*inventory.Profile {
	for _, is := range []func(*inventory.Profile) bool{
		func(p *inventory.Profile) bool { return inventory.KeyOf(p).String() == name },
		func(p *inventory.Profile) bool { return inventory.ClusterName(p) == name },
		func(p *inventory.Profile) bool { return p.Name == name },
	} {
		found := slices.DeleteFunc(slices.Clone(all), func(p *inventory.Profile) bool { return !is(p) })
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// Typed returns the profile with its apiVersion and kind, for printing.
func Typed(profile *inventory.Profile) *inventory.Profile {
	typed := profile.DeepCopy()
	typed.TypeMeta = metav1.TypeMeta{APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ClusterProfile"}
	return typed
}

// listing is a sink that collects profiles until they are synced.
type listing struct {
	mu       sync.Mutex // guards profiles
	profiles map[inventory.Key]*inventory.Profile
	once     sync.Once
	synced   chan struct{}
}

func (l *listing) Put(profile *inventory.Profile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.profiles[inventory.KeyOf(profile)] = profile
}

func (l *listing) Remove(key inventory.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.profiles, key)
}

func (l *listing) Synced() { l.once.Do(func() { close(l.synced) }) }

func (l *listing) sorted() []*inventory.Profile {
	profiles := make([]*inventory.Profile, 0, len(l.profiles))
	for _, profile := range l.profiles {
		profiles = append(profiles, profile)
	}
	slices.SortFunc(profiles, func(a, b *inventory.Profile) int {
		return strings.Compare(inventory.KeyOf(a).String(), inventory.KeyOf(b).String())
	})
	return profiles
}
