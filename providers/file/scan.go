// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/providers/internal/files"
	"github.com/rollcall-dev/rollcall/providers/internal/kubeconfigs"
)

// run is one run of the source. Only its goroutine uses it.
type run struct {
	*source
	sink   inventory.Sink
	log    logr.Logger
	reader *files.Reader
	folder *lister

	known map[string]*kubeconfigFile // by path
	refs  []string                   // paths that kubeconfigs name
}

// kubeconfigFile is a file that was found, with its last content.
type kubeconfigFile struct {
	path    string
	content []byte
	parsed  *kubeconfig.Kubeconfig
	err     error // why there is no content, or it is invalid

	names    []string // of the contexts of the last content that was valid
	contexts map[string]*contextResult
}

// contextResult is a context of a valid content, or why it is invalid.
type contextResult struct {
	*kubeconfig.Context
	err error
}

func newRun(s *source, sink inventory.Sink, log logr.Logger) *run {
	return &run{
		source: s, sink: sink, log: log, reader: files.NewReader(), folder: newLister(s.options, log),
		known: map[string]*kubeconfigFile{},
	}
}

// scan reads all files and sends their clusters. It returns whether it must be called
// again after files.SettleTime.
func (r *run) scan(notifier *files.Notifier) (again bool) {
	paths, folders := r.folder.list()
	for path := range r.known { // until the reader has seen that they are gone
		paths = append(paths, path)
	}
	paths = unique(paths)
	for {
		all := slices.Concat(paths, r.refs)
		notifier.Watch(all, folders)
		again = r.reader.Scan(all)
		r.update(paths)
		refs := r.references()
		if slices.Equal(refs, r.refs) {
			break
		}
		r.refs = refs
	}
	r.send(paths)
	return again
}

// unique removes paths that are the same file, by name.
func unique(paths []string) []string {
	var kept []string
	seen := map[string]bool{}
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			absolute = path
		}
		if !seen[absolute] {
			seen[absolute] = true
			kept = append(kept, path)
		}
	}
	return kept
}

// update takes over the contents that have changed.
func (r *run) update(paths []string) {
	for _, path := range paths {
		content, err := r.reader.Read(path)
		file := r.known[path]
		switch {
		case files.IsMissing(err):
			delete(r.known, path)
			continue
		case r.reader.Pending(path):
			continue
		case file == nil:
			file = &kubeconfigFile{path: path}
			r.known[path] = file
		case err == nil && file.err == nil && bytes.Equal(content, file.content):
			continue
		}
		file.parse(content, err)
	}
}

// parse takes over a content, or why there is none.
func (f *kubeconfigFile) parse(content []byte, err error) {
	f.content, f.parsed, f.err, f.contexts = content, nil, err, map[string]*contextResult{}
	if err != nil {
		return
	}
	dir, err := filepath.Abs(filepath.Dir(f.path))
	if err != nil {
		f.err = err
		return
	}
	if f.parsed, f.err = kubeconfig.Parse(origin(f.path), dir, content); f.err != nil {
		return
	}
	f.names = f.parsed.Contexts()
	for _, name := range f.names {
		c := &contextResult{}
		c.Context, c.err = f.parsed.Context(name)
		f.contexts[name] = c
	}
}

// references returns the paths that kubeconfigs name, sorted.
func (r *run) references() []string {
	var paths []string
	for file := range maps.Values(r.known) {
		for _, c := range file.contexts {
			if c.err == nil {
				paths = append(paths, c.Files()...)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// send sends the clusters of all files, and removes others.
func (r *run) send(paths []string) {
	exists, keep := map[string]bool{}, map[inventory.Key]bool{}
	for _, path := range paths {
		file := r.known[path]
		if file == nil {
			continue
		}
		contexts := file.names
		if file.err != nil && len(contexts) == 0 {
			contexts = []string{""} // so that the status has the error
		}
		for _, contextName := range contexts {
			name := path
			if contextName != "" {
				name = r.clusterName(path, contextName)
			}
			exists[name] = true
			if r.isHidden(name, file.parsed) {
				continue
			}
			key, cluster := r.cluster(name, path, contextName)
			keep[key] = true
			r.sendContext(file, contextName, cluster)
		}
	}
	r.forget(exists)
	for _, key := range r.store.Keys() {
		if !keep[key] {
			r.store.Remove(r.sink, key)
		}
	}
}

// sendContext sends the cluster of a context, unless a file that it names may be
// incomplete.
func (r *run) sendContext(file *kubeconfigFile, name string, cluster kubeconfigs.Cluster) {
	cluster.Err = file.err
	if c := file.contexts[name]; c != nil {
		cluster.Context, cluster.Err = c.Context, c.err
	}
	if cluster.Context != nil && r.reader.Pending(cluster.Context.Files()...) {
		return
	}
	if err := r.store.Put(r.sink, cluster, r.reader.Read, r.recheck); err != nil {
		r.log.Error(err, "Cannot describe the cluster of a context, ignoring it", "file", file.path, "context", name)
	}
}
