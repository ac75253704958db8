// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// accessFailure is the outcome of the step Provider for an error of the Method.
func (r *run) accessFailure(err error) outcome {
	o := failed(NoAccess, withoutProfile(err))
	switch {
	case r.parent.Err() != nil:
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
func (r *run) credential(access *credentials.Access) bool {
	explained := access.Explain()
	start := time.Now()
	plugin := r.plugin(explained.Plugin)
	plugin.readable = true // paths can look like secrets
	r.report.set(StepPlugin, plugin.since(start))
	if plugin.status == Failed {
		r.report.set(StepCredential, skipped("no plugin"))
		return false
	}
	start = time.Now()
	info, err := access.DescribeCredential(r.ctx)
	o := r.credentialOutcome(info, err)
	r.report.set(StepCredential, o.since(start))
	if err != nil {
		return false
	}
	r.report.Credential = &Credential{Kind: info.Kind}
	if !info.Expiry.IsZero() {
		r.report.Credential.Expires = &metav1.Time{Time: info.Expiry}
	}
	return o.status != Failed
}

// plugin is the step Plugin.
func (r *run) plugin(run *credentials.PluginExplanation) outcome {
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
		r.report.Plugin = &Plugin{InProcess: run.InProcess, Version: run.Version}
		return succeeded(fmt.Sprintf("%s %s in this process", run.InProcess, run.Version))
	case run.Path == "":
		return skipped("client-go runs the plugin")
	}
	r.report.Plugin = &Plugin{Path: run.Path}
	r.report.Plugin.Version, r.report.Plugin.SHA256 = r.versions.of(run.Path)
	switch {
	case r.report.Plugin.Version != "":
		return succeeded(run.Path + ", " + r.report.Plugin.Version)
	case r.report.Plugin.SHA256 != "":
		return succeeded(run.Path + ", without a version, sha256:" + r.report.Plugin.SHA256)
	}
	return succeeded(run.Path + ", which can be run, but not read")
}

func (r *run) credentialOutcome(info credentials.CredentialInfo, err error) outcome {
	if err == nil {
		return credentialFound(info)
	}
	o := failed(NoCredential, withoutProfile(err))
	switch {
	case r.parent.Err() != nil:
		return canceled(o)
	case r.ctx.Err() != nil:
		o.cause = PluginTimeout
		o.message = fmt.Sprintf("no credential within %s: the plugin hangs, or waits for others", r.limit)
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
	case info.Kind == credentials.KindOfPlugin:
		return skipped("client-go runs the plugin with the first request")
	case info.Expiry.IsZero():
		return succeeded(string(info.Kind) + ", no known expiry")
	case !time.Now().Before(info.Expiry):
		return failed(Expired, fmt.Sprintf("%s, expired %s", info.Kind, info.Expiry.UTC().Format(time.RFC3339)))
	}
	return succeeded(fmt.Sprintf("%s, expires %s", info.Kind, info.Expiry.UTC().Format(time.RFC3339)))
}
