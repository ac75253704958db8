// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// script is a source that executes steps, one after the other. Each run begins
// with all of its profiles.
type script struct {
	steps    chan func(Sink) error
	profiles map[Key]*Profile
}

func newScript() *script {
	return &script{steps: make(chan func(Sink) error), profiles: map[Key]*Profile{}}
}

func (s *script) Run(ctx context.Context, sink Sink) error {
	for _, key := range slices.SortedFunc(maps.Keys(s.profiles), compareKeys) {
		sink.Put(s.profiles[key])
	}
	sink.Synced()
	for {
		select {
		case <-ctx.Done():
			return nil
		case step := <-s.steps:
			if err := step(sink); err != nil {
				return err
			}
		}
	}
}

// do executes a step and waits until the source is idle.
func (s *script) do(step func(Sink) error) {
	s.steps <- step
	// Long enough for the restart of a source that failed.
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}

func (s *script) put(profile *Profile) {
	s.do(func(sink Sink) error {
		s.profiles[KeyOf(profile)] = profile
		sink.Put(profile)
		return nil
	})
}

func (s *script) remove(key Key) {
	s.do(func(sink Sink) error {
		delete(s.profiles, key)
		sink.Remove(key)
		return nil
	})
}

// fail ends the run and removes a profile before the next one.
func (s *script) fail(removed Key) {
	s.do(func(Sink) error {
		delete(s.profiles, removed)
		return errors.New("outage")
	})
}

// store is a sink that keeps profiles.
type store struct {
	profiles map[Key]*Profile
	synced   int
}

func newStore() *store {
	return &store{profiles: map[Key]*Profile{}}
}

func (s *store) Put(profile *Profile) { s.profiles[KeyOf(profile)] = profile }
func (s *store) Remove(key Key)       { delete(s.profiles, key) }
func (s *store) Synced()              { s.synced++ }

// describe returns cluster names and versions.
func describe(profiles map[Key]*Profile) map[Key]string {
	all := map[Key]string{}
	for key, profile := range profiles {
		all[key] = ClusterName(profile) + " " + profile.Labels["version"]
	}
	return all
}

func compareKeys(a, b Key) int {
	return compareAge(keyed(a), keyed(b))
}

func keyed(key Key) *Profile {
	return &Profile{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// anyProfile draws a profile out of few, so that keys and identities repeat.
func anyProfile(t *rapid.T) *Profile {
	profile := keyed(anyKey(t))
	profile.Labels = map[string]string{"version": rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "version")}
	if name := rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "cluster name"); name != "" {
		profile.Annotations = map[string]string{AnnotationClusterName: name}
	}
	if age := rapid.IntRange(0, 2).Draw(t, "created"); age > 0 {
		profile.CreationTimestamp = metav1.Unix(int64(age), 0)
	}
	if id := rapid.SampledFrom([]string{"", "x", "y", "0a3e7d5c-5c0f-4f0e-9d3b-6f2f1b9d6f11"}).Draw(t, "id"); id != "" {
		profile.Status.Properties = append(profile.Status.Properties, v1alpha1.Property{Name: PropertyClusterID, Value: id})
	}
	if set := rapid.SampledFrom([]string{"", "s", "t"}).Draw(t, "set"); set != "" {
		profile.Status.Properties = append(profile.Status.Properties, v1alpha1.Property{Name: PropertyClusterSet, Value: set})
	}
	return profile
}

func anyKey(t *rapid.T) Key {
	return Key{Namespace: "fleet", Name: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "name")}
}

// definition defines a decorator as a function from the profiles of the sources to
// those of the sink.
type definition func(sources ...map[Key]*Profile) map[Key]*Profile

func selected(sources ...map[Key]*Profile) map[Key]*Profile {
	all := map[Key]*Profile{}
	for key, profile := range sources[0] {
		if isVersion1(profile) {
			all[key] = profile
		}
	}
	return all
}

func mergedByOrder(sources ...map[Key]*Profile) map[Key]*Profile {
	all := map[Key]*Profile{}
	for _, profiles := range slices.Backward(sources) {
		maps.Copy(all, profiles)
	}
	return all
}

func renamedWithPrefix(sources ...map[Key]*Profile) map[Key]*Profile {
	all := map[Key]*Profile{}
	for key, profile := range sources[0] {
		renamed := profile.DeepCopy()
		name := "p#" + ClusterName(profile)
		renamed.Name = hashedName(name, name+"\n"+key.String())
		metav1.SetMetaDataAnnotation(&renamed.ObjectMeta, AnnotationClusterName, name)
		all[KeyOf(renamed)] = renamed
	}
	return all
}

func isVersion1(profile *Profile) bool { return profile.Labels["version"] == "1" }

func TestDecoratorsAreLevelTriggered(t *testing.T) {
	for _, tc := range []struct {
		name     string
		sources  int
		decorate func(sources ...Source) Source
		want     definition
	}{
		{"Select", 1, func(s ...Source) Source { return Restart(Select(s[0], isVersion1)) }, selected},
		{"Rename", 1, func(s ...Source) Source { return Restart(Rename(s[0], Prefix("p#"))) }, renamedWithPrefix},
		{"Merge", 3, Merge, mergedByOrder},
		{"all combined", 2, func(s ...Source) Source {
			return Restart(Select(Merge(Rename(s[0], Prefix("p#")), s[1]), isVersion1))
		}, func(s ...map[Key]*Profile) map[Key]*Profile {
			return selected(mergedByOrder(renamedWithPrefix(s[0]), s[1]))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				steps := rapid.SliceOfN(rapid.Custom(anyStep(tc.sources)), 1, 30).Draw(rt, "steps")
				var problem string
				synctest.Test(t, func(*testing.T) {
					problem = play(steps, tc.sources, tc.decorate, tc.want)
				})
				if problem != "" {
					rt.Fatal(problem)
				}
			})
		})
	}
}

// step is an event at a source.
type step struct {
	source int
	kind   string
	*Profile
}

func anyStep(sources int) func(t *rapid.T) step {
	return func(t *rapid.T) step {
		return step{
			source:  rapid.IntRange(0, sources-1).Draw(t, "source"),
			kind:    rapid.SampledFrom([]string{"put", "put", "put", "remove", "fail"}).Draw(t, "kind"),
			Profile: anyProfile(t),
		}
	}
}

// play executes the steps and returns the first deviation from the definition.
func play(steps []step, n int, decorate func(...Source) Source, want definition) (problem string) {
	scripts, sources := make([]*script, n), make([]Source, n)
	for i := range n {
		scripts[i] = newScript()
		sources[i] = scripts[i]
	}
	sink := newStore()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- decorate(sources...).Run(ctx, sink) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil && problem == "" {
			problem = err.Error()
		}
	}()

	for i, step := range steps {
		source := scripts[step.source]
		switch step.kind {
		case "put":
			source.put(step.Profile)
		case "remove":
			source.remove(KeyOf(step.Profile))
		case "fail":
			source.fail(KeyOf(step.Profile))
		}
		var content []map[Key]*Profile
		for _, s := range scripts {
			content = append(content, s.profiles)
		}
		if got, want := describe(sink.profiles), describe(want(content...)); !maps.Equal(got, want) {
			return fmt.Sprintf("after step %d, %s of %s:\n got %v\nwant %v", i+1, step.kind, KeyOf(step.Profile), got, want)
		}
		if sink.synced != 1 {
			return fmt.Sprintf("after step %d: synced %d times", i+1, sink.synced)
		}
	}
	return ""
}
