// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// accessFailure is the outcome of the step Provider for an error of the Method.
func (c *checker) accessFailure(parent context.Context, err error) outcome {
	o := failed(NoAccess, withoutProfile(err))
	switch {
	case parent.Err() != nil:
		return canceled(o)
	case errors.Is(err, credentials.ErrNoProvider):
		o.cause = NoProvider
	case errors.Is(err, credentials.ErrDenied):
		o.cause = Denied
	case errors.Is(err, credentials.ErrInvalidProfile):
		o.cause = InvalidProfile
	}
	return o
}

// withoutProfile returns the error's text without the profile, which the report
// names.
func withoutProfile(err error) string {
	if e, ok := errors.AsType[*credentials.Error](err); ok {
		if e.Provider != "" {
			return fmt.Sprintf("provider %q: %v", e.Provider, e.Err)
		}
		return e.Err.Error()
	}
	return err.Error()
}

func providerFound(access *credentials.Access) outcome {
	if name := access.Provider(); name != "" {
		return succeeded(fmt.Sprintf("%q", name))
	}
	return succeeded("a kubeconfig or another configuration, no provider is needed")
}

// credential runs the steps Plugin and Credential, and reports whether there is a
// credential, or the configuration needs none.
func (c *checker) credential(ctx, parent context.Context, r *Report, access *credentials.Access) bool {
	explained := access.Explain()
	start := time.Now()
	plugin := c.plugin(r, explained.Plugin)
	plugin.readable = true // paths can look like secrets
	r.set(StepPlugin, plugin.since(start))
	if plugin.status == Failed {
		r.set(StepCredential, skipped("no plugin"))
		return false
	}
	start = time.Now()
	info, err := access.Credential(ctx)
	o := c.credentialOutcome(ctx, parent, info, err, time.Since(start))
	r.set(StepCredential, o.since(start))
	if err != nil {
		return false
	}
	r.Credential = &Credential{Kind: info.Kind}
	if !info.Expiry.IsZero() {
		r.Credential.Expires = &metav1.Time{Time: info.Expiry}
	}
	return o.status != Failed
}

// plugin is the step Plugin.
func (c *checker) plugin(r *Report, run *credentials.PluginExplanation) outcome {
	switch {
	case run == nil:
		return skipped("the credential is in the configuration, no plugin is needed")
	case run.Missing != "":
		o := failed(PluginMissing, run.Missing)
		if run.InstallHint != "" {
			o.remedy = "install the plugin: " + printable(run.InstallHint)
		}
		return o
	case run.InProcess != "":
		r.Plugin = &Plugin{InProcess: run.InProcess, Version: run.Version}
		return succeeded(fmt.Sprintf("%s %s in this process", run.InProcess, run.Version))
	case run.Path == "":
		return skipped("client-go runs the plugin")
	}
	r.Plugin = &Plugin{Path: run.Path}
	r.Plugin.Version, r.Plugin.SHA256 = c.versions.of(run.Path)
	switch {
	case r.Plugin.Version != "":
		return succeeded(run.Path + ", " + r.Plugin.Version)
	case r.Plugin.SHA256 != "":
		return succeeded(run.Path + ", without a version, sha256:" + r.Plugin.SHA256)
	}
	return succeeded(run.Path + ", which can be run, but not read")
}

func (c *checker) credentialOutcome(
	ctx, parent context.Context, info credentials.CredentialInfo, err error, took time.Duration,
) outcome {
	if err == nil {
		return credentialFound(info)
	}
	o := failed(NoCredential, withoutProfile(err))
	switch {
	case parent.Err() != nil:
		return canceled(o)
	case ctx.Err() != nil:
		o.cause = PluginTimeout
		o.message = fmt.Sprintf("no credential within %s: the plugin hangs, or waits for others", took.Round(time.Millisecond))
	case errors.Is(err, credentials.ErrExpired):
		o.cause = Expired
	case errors.Is(err, credentials.ErrInvalidOutput):
		o.cause = InvalidOutput
	case errors.Is(err, credentials.ErrTimeout):
		o.cause = PluginTimeout
	case errors.Is(err, credentials.ErrPluginMissing):
		o.cause = PluginMissing
	case errors.Is(err, credentials.ErrDenied):
		o.cause = Denied
	case errors.Is(err, credentials.ErrPluginFailed):
		o.cause = PluginFailed
	}
	return o
}

func credentialFound(info credentials.CredentialInfo) outcome {
	switch {
	case info.Kind == credentials.KindNone:
		return skipped("the configuration has no credential, requests are anonymous")
	case info.Expiry.IsZero():
		return succeeded(string(info.Kind) + ", no known expiry")
	case !time.Now().Before(info.Expiry):
		return failed(Expired, fmt.Sprintf("%s, expired %s", info.Kind, info.Expiry.UTC().Format(time.RFC3339)))
	}
	return succeeded(fmt.Sprintf("%s, expires %s", info.Kind, info.Expiry.UTC().Format(time.RFC3339)))
}
