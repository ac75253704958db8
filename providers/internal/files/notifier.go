// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

const (
	// slowPoll is how often to look for changes that cause no notification, as on
	// network file systems.
	slowPoll = 10 * time.Second

	// fastPoll replaces it where there are no notifications at all.
	fastPoll = 500 * time.Millisecond

	// maxLinks is how many symbolic links a path may have.
	maxLinks = 40
)

// errNotDir is the error of a path that leads through a file.
const errNotDir = syscall.ENOTDIR

// Notifier says when files may have changed. Its methods are called from one goroutine.
type Notifier struct {
	// C receives when files may have changed. Several changes may be one value.
	C <-chan struct{}

	c       chan struct{}
	log     logr.Logger
	watcher *fsnotify.Watcher // nil if there are no notifications
	running sync.WaitGroup
	closing chan struct{}

	mu     sync.Mutex // guards what follows
	points points
	settle *time.Timer
	fault  error // why not all changes are notified, or nil
}

// Folder is a folder with the patterns, as of path/filepath.Match, of the names in it
// that matter.
type Folder struct {
	Dir      string
	Patterns []string
}

// points are the names in each folder whose events matter.
type points map[string]*names

type names struct {
	exact    map[string]bool
	patterns []string
}

func (p points) at(dir string) *names {
	if p[dir] == nil {
		p[dir] = &names{exact: map[string]bool{}}
	}
	return p[dir]
}

func (p points) add(dir, name string) { p.at(dir).exact[name] = true }

func (n *names) match(name string) bool {
	return n.exact[name] || slices.ContainsFunc(n.patterns, func(pattern string) bool {
		matches, _ := filepath.Match(pattern, name)
		return matches
	})
}

// NewNotifier returns a Notifier, which must be closed. If the system has no
// notifications, it polls.
func NewNotifier(log logr.Logger) *Notifier { return newNotifier(log, fsnotify.NewWatcher) }

func newNotifier(log logr.Logger, newWatcher func() (*fsnotify.Watcher, error)) *Notifier {
	c := make(chan struct{}, 1)
	n := &Notifier{C: c, c: c, log: log, closing: make(chan struct{}), points: points{}}
	watcher, err := newWatcher()
	if err != nil {
		n.setFault(err)
	} else {
		n.watcher = watcher
		n.running.Go(n.forward)
	}
	n.running.Go(n.poll)
	return n
}

// Close ends the Notifier and waits for its goroutines.
func (n *Notifier) Close() {
	close(n.closing)
	if n.watcher != nil {
		_ = n.watcher.Close()
	}
	n.mu.Lock()
	if n.settle != nil {
		n.settle.Stop()
	}
	n.mu.Unlock()
	n.running.Wait()
}

// After has C receive after the time.
func (n *Notifier) After(delay time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.settle != nil {
		n.settle.Stop()
	}
	n.settle = time.AfterFunc(delay, n.notify)
}

// Watch replaces what is watched: files, and names in folders. They need not exist.
func (n *Notifier) Watch(files []string, folders []Folder) {
	wanted := points{}
	for _, path := range files {
		wanted.follow(path)
	}
	for _, folder := range folders {
		if dir, ok := wanted.follow(folder.Dir); ok {
			point := wanted.at(dir)
			point.patterns = append(point.patterns, folder.Patterns...)
		}
	}
	n.mu.Lock()
	n.points = wanted
	n.mu.Unlock()
	if n.watcher == nil {
		return
	}
	watched := n.watcher.WatchList()
	for _, dir := range watched {
		if wanted[dir] == nil {
			_ = n.watcher.Remove(dir) // it may be gone
		}
	}
	added := false
	var fault error
	for dir := range wanted {
		if slices.Contains(watched, dir) {
			continue
		}
		err := n.watcher.Add(dir)
		switch {
		case err == nil:
			added = true
		case !IsMissing(err):
			fault = err
		}
	}
	n.setFault(fault)
	if added {
		n.notify() // there may have been changes before
	}
}

// follow adds all folders in which a change could lead the path to another file, and
// returns the path without symbolic links, and whether it exists.
func (p points) follow(path string) (string, bool) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", false
	}
	rest := strings.Split(path, string(filepath.Separator))
	at := rest[0] + string(filepath.Separator)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || at == name+string(filepath.Separator) {
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			p.add(at, name)
			return next, false
		case info.Mode()&os.ModeSymlink != 0:
			p.add(at, name)
			target, err := os.Readlink(next)
			if links++; err != nil || links > maxLinks {
				return next, false
			}
			if filepath.IsAbs(target) {
				at = filepath.VolumeName(target) + string(filepath.Separator)
				target = target[len(filepath.VolumeName(target)):]
			}
			rest = append(strings.Split(filepath.Clean(target), string(filepath.Separator)), rest...)
		default:
			if len(rest) == 0 {
				p.add(at, name)
			}
			at = next
		}
	}
	return at, true
}

// forward notifies of events until the watcher is closed.
func (n *Notifier) forward() {
	for {
		select {
		case event, ok := <-n.watcher.Events:
			if !ok {
				return
			}
			if n.concerns(event.Name) {
				n.notify()
			}
		case err, ok := <-n.watcher.Errors:
			if !ok {
				return
			}
			n.log.V(1).Info("Notification of file changes failed, reading all files", "error", err.Error())
			n.notify()
		}
	}
}

func (n *Notifier) concerns(path string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.points[path] != nil {
		return true // a folder was moved or removed
	}
	point := n.points[filepath.Dir(path)]
	return point != nil && point.match(filepath.Base(path))
}

func (n *Notifier) notify() {
	select {
	case n.c <- struct{}{}:
	default:
	}
}

// setFault sets why not all changes are notified, and logs the first fault.
func (n *Notifier) setFault(fault error) {
	n.mu.Lock()
	known := n.fault != nil
	n.fault = fault
	n.mu.Unlock()
	if fault != nil && !known {
		n.log.Info("Cannot be notified of all file changes, polling the files", "error", fault.Error(), "interval", fastPoll.String())
	}
}

// poll notifies at intervals until the Notifier is closed.
func (n *Notifier) poll() {
	ticker := time.NewTicker(fastPoll)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-n.closing:
			return
		case now := <-ticker.C:
			n.mu.Lock()
			due := n.fault != nil || now.Sub(last) >= slowPoll
			n.mu.Unlock()
			if due {
				last = now
				n.notify()
			}
		}
	}
}
