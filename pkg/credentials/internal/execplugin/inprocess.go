// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/fingerprint"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// errStillRunning is the error of a run whose predecessor goes on although its
// context has ended. It cannot be killed, and must not run twice.
var errStillRunning = fmt.Errorf("%w: it has not returned from an earlier run", errdefs.ErrTimeout)

// inProcessGrace is how long a run waits for its predecessor to return.
const inProcessGrace = 100 * time.Millisecond

// executeInProcess is execute for a plugin in this process. It uses the code that
// the plugin has as an executable, from the flags to the output, so that both do
// the same. That code waits at most a second for a plugin whose context has
// ended.
func (r *Runner) executeInProcess(ctx context.Context, i *Invocation) (stdout, stderr []byte, code int, err error) {
	newPlugin := r.options.Plugins[i.InProcess]
	if newPlugin == nil {
		return nil, nil, -1, fmt.Errorf("%w: rollcall.inProcess names a plugin that is not linked into this program (Options.Plugins)", errdefs.ErrPluginMissing)
	}
	defer func() {
		if cause := recover(); cause != nil {
			// Only the type: the cause could contain a secret.
			stdout, stderr, code = nil, nil, -1
			err = fmt.Errorf("%w: panic of type %T", errdefs.ErrPluginFailed, cause)
		}
	}()
	run, err := r.beginInProcess(fingerprint.Of(i))
	if err != nil {
		return nil, nil, -1, err
	}
	defer run.endUnlessCalled()
	run.Plugin = newPlugin()
	limited, fail := r.limit(ctx)
	defer fail(nil)

	out, end := &outputBuffer{full: func() { fail(errTooLong) }}, &tail{}
	code = plugin.Run(limited, run, i.Args, i.environment(nil), out, end)
	if cause := context.Cause(limited); cause != nil {
		return nil, end.bytes(), -1, cause
	}
	if code != plugin.ExitOK {
		err = errdefs.ErrPluginFailed
	}
	return out.buffer.Bytes(), end.bytes(), code, err
}

// beginInProcess returns a run for the key. It waits a moment for one that was
// stopped, since its access was released, and returns errStillRunning otherwise.
func (r *Runner) beginInProcess(key string) (*inProcessRun, error) {
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

// inProcessRun is a plugin that reports when it has returned.
type inProcessRun struct {
	plugin.Plugin
	called atomic.Bool // Credential
	end    func()      // called when the plugin has returned
}

var _ plugin.Flagger = &inProcessRun{}

// AddFlags implements plugin.Flagger.
func (r *inProcessRun) AddFlags(flags *flag.FlagSet) {
	if f, ok := r.Plugin.(plugin.Flagger); ok {
		f.AddFlags(flags)
	}
}

// endUnlessCalled ends a run that has failed before the call of Credential.
func (r *inProcessRun) endUnlessCalled() {
	if !r.called.Load() {
		r.end()
	}
}

// Credential implements plugin.Plugin.
func (r *inProcessRun) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	r.called.Store(true)
	defer r.end()
	return r.Plugin.Credential(ctx, request)
}

// Version returns the version of a plugin in this process, and whether there is one.
func (r *Runner) Version(name string) (version string, found bool) {
	newPlugin := r.options.Plugins[name]
	if newPlugin == nil {
		return "", false
	}
	return newPlugin().Version(), true
}
