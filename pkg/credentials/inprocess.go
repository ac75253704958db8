// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// errStillRunning is why a plugin is not run that has not heeded the end of its
// context. Nothing in this process can end it, but there is to be one only.
var errStillRunning = fmt.Errorf("%w: it has not returned from an earlier run", ErrTimeout)

// inProcessGrace is how long a run waits for the one before it to return.
const inProcessGrace = 100 * time.Millisecond

// executeInProcess is execute for a plugin in this process. The plugin meets
// the very code that it would meet as a binary, from the flags to the answer,
// so that both do the same. That code waits no longer than a second for a
// plugin whose context has ended.
func (r *runner) executeInProcess(ctx context.Context, i *invocation) (stdout, stderr []byte, code int, err error) {
	newPlugin := r.plugins[i.InProcess]
	if newPlugin == nil {
		return nil, nil, -1, fmt.Errorf("%w: it is not among the plugins of this program", ErrPluginMissing)
	}
	defer func() {
		if cause := recover(); cause != nil {
			// The cause could hold anything, so it is not shown but for its type.
			stdout, stderr, code = nil, nil, -1
			err = fmt.Errorf("%w: panic of type %T", ErrPluginFailed, cause)
		}
	}()
	run, err := r.beginInProcess(digest(i))
	if err != nil {
		return nil, nil, -1, err
	}
	defer run.endUnlessAsked()
	run.Plugin = newPlugin()
	limited, fail := r.limit(ctx)
	defer fail(nil)

	out, end := &answerBuffer{full: func() { fail(errTooLong) }}, &tail{}
	code = plugin.Run(limited, run, i.Args, []string{execInfoVariable + "=" + i.ExecInfo}, out, end)
	if cause := context.Cause(limited); cause != nil {
		return nil, end.bytes(), -1, cause
	}
	if code != plugin.ExitOK {
		err = ErrPluginFailed
	}
	return out.buffer.Bytes(), end.bytes(), code, err
}

// beginInProcess returns the run for the key, or errStillRunning. One that was
// stopped just now, for an access that was released, is given time to return.
func (r *runner) beginInProcess(key string) (*inProcessRun, error) {
	returned := make(chan struct{})
	run := &inProcessRun{end: sync.OnceFunc(func() {
		r.inProcess.Delete(key)
		close(returned)
	})}
	timer := time.NewTimer(inProcessGrace)
	defer timer.Stop()
	for {
		earlier, running := r.inProcess.LoadOrStore(key, returned)
		if !running {
			return run, nil
		}
		select {
		case <-earlier.(chan struct{}):
		case <-timer.C:
			return nil, errStillRunning
		}
	}
}

// inProcessRun is a plugin of which it is known whether it has returned.
type inProcessRun struct {
	plugin.Plugin
	asked atomic.Bool // for a credential
	end   func()      // the plugin has returned
}

var _ plugin.Flagger = &inProcessRun{}

// AddFlags implements plugin.Flagger.
func (r *inProcessRun) AddFlags(flags *flag.FlagSet) {
	if f, ok := r.Plugin.(plugin.Flagger); ok {
		f.AddFlags(flags)
	}
}

// endUnlessAsked ends a run of which nothing is left behind.
func (r *inProcessRun) endUnlessAsked() {
	if !r.asked.Load() {
		r.end()
	}
}

// Credential implements plugin.Plugin.
func (r *inProcessRun) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	r.asked.Store(true)
	defer r.end()
	return r.Plugin.Credential(ctx, request)
}

// pluginsByName calls each function once, for the name.
func pluginsByName(plugins []func() plugin.Plugin) (map[string]func() plugin.Plugin, error) {
	byName := make(map[string]func() plugin.Plugin, len(plugins))
	for i, newPlugin := range plugins {
		if newPlugin == nil {
			return nil, fmt.Errorf("credentials: Plugins[%d]: must not be nil", i)
		}
		p := newPlugin()
		if p == nil {
			return nil, fmt.Errorf("credentials: Plugins[%d]: returns no plugin", i)
		}
		name := p.Name()
		if name == "" {
			return nil, fmt.Errorf("credentials: Plugins[%d]: its name must not be empty", i)
		}
		if byName[name] != nil {
			return nil, fmt.Errorf("credentials: Plugins[%d]: the name %q is already taken by an earlier one", i, name)
		}
		byName[name] = newPlugin
	}
	return byName, nil
}
