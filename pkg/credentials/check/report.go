// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// Report is what the check of a profile found. It contains no secret. The names of the
// fields in JSON, steps, statuses and causes are stable.
type Report struct {
	// Profile is the profile's namespace and name.
	Profile string `json:"profile"`

	// OK means that no step has failed.
	OK bool `json:"ok"`

	// Provider is the provider that is used, or "".
	Provider string `json:"provider,omitempty"`

	// Server is the URL of the API server, or "".
	Server string `json:"server,omitempty"`

	// Plugin is the plugin that obtains the credential, or nil.
	Plugin *Plugin `json:"plugin,omitempty"`

	// Credential describes the credential, or is nil if there is none.
	Credential *Credential `json:"credential,omitempty"`

	// User is who the cluster says that the credential belongs to, or nil.
	User *User `json:"user,omitempty"`

	// MissingPermissions are those that the rules demand and the user lacks.
	MissingPermissions []Permission `json:"missingPermissions,omitempty"`

	// Steps are all steps, always in the same order.
	Steps []Step `json:"steps"`

	// Duration is how long the check took.
	Duration metav1.Duration `json:"duration"`
}

// Plugin is an executable, or a plugin in this process.
type Plugin struct {
	// Path is the executable.
	Path string `json:"path,omitempty"`

	// InProcess is the name of a plugin in this process.
	InProcess string `json:"inProcess,omitempty"`

	// Version is its version, as "v1.2.0" or "example.com/plugin v1.2.0", or "".
	Version string `json:"version,omitempty"`

	// SHA256 is the digest of an executable without a version.
	SHA256 string `json:"sha256,omitempty"`
}

// Credential describes a credential.
type Credential struct {
	// Kind is what it consists of.
	Kind credentials.CredentialKind `json:"kind"`

	// Expires is when it expires, or nil if that is not known.
	Expires *metav1.Time `json:"expires,omitempty"`
}

// User is a user of the cluster.
type User struct {
	Name   string   `json:"name"`
	UID    string   `json:"uid,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Step is one part of a check.
type Step struct {
	Name   StepName `json:"name"`
	Status Status   `json:"status"`

	// Message says what was found.
	Message string `json:"message,omitempty"`

	// Cause and Remedy are set if the step failed.
	Cause  Cause  `json:"cause,omitempty"`
	Remedy string `json:"remedy,omitempty"`

	// Duration is how long the step took: for Credential, the run of the plugin with
	// its wait for a slot.
	Duration metav1.Duration `json:"duration"`
}

// StepName is the name of a step.
type StepName string

// The steps, in their order. Server and TLS do not wait for Plugin and Credential.
const (
	StepProvider    StepName = "Provider"
	StepPlugin      StepName = "Plugin"
	StepCredential  StepName = "Credential"
	StepServer      StepName = "Server"
	StepTLS         StepName = "TLS"
	StepIdentity    StepName = "Identity"
	StepPermissions StepName = "Permissions"
)

var stepNames = []StepName{StepProvider, StepPlugin, StepCredential, StepServer, StepTLS, StepIdentity, StepPermissions}

// Status is the outcome of a step.
type Status string

// The outcomes.
const (
	OK      Status = "ok"
	Failed  Status = "failed"
	Skipped Status = "skipped" // Message has the reason
)

// Failure returns the first step that failed, or nil.
func (r *Report) Failure() *Step {
	for i := range r.Steps {
		if r.Steps[i].Status == Failed {
			return &r.Steps[i]
		}
	}
	return nil
}

// Step returns the step of that name.
func (r *Report) Step(name StepName) Step {
	for _, step := range r.Steps {
		if step.Name == name {
			return step
		}
	}
	return Step{Name: name, Status: Skipped}
}

// outcome is the result of a step.
type outcome struct {
	status   Status
	cause    Cause
	message  string
	readable bool   // the message has nothing that plugins or servers have chosen
	remedy   string // for a cause whose remedy depends on more
	duration time.Duration
}

func succeeded(message string) outcome { return outcome{status: OK, message: message} }
func skipped(reason string) outcome    { return outcome{status: Skipped, message: reason} }

func failed(cause Cause, message string) outcome {
	return outcome{status: Failed, cause: cause, message: message}
}

// since sets the duration.
func (o outcome) since(start time.Time) outcome {
	o.duration = time.Since(start)
	return o
}

func newReport(profile string) *Report {
	r := &Report{Profile: profile, Steps: make([]Step, len(stepNames))}
	for i, name := range stepNames {
		r.Steps[i] = Step{Name: name, Status: Skipped}
	}
	return r
}

func (r *Report) set(name StepName, o outcome) {
	for i := range r.Steps {
		if r.Steps[i].Name != name {
			continue
		}
		if !o.readable {
			o.message = printable(o.message)
		}
		step := Step{Name: name, Status: o.status, Message: o.message, Duration: metav1.Duration{Duration: o.duration.Round(time.Millisecond)}}
		if o.status == Failed {
			step.Cause, step.Remedy = o.cause, o.remedy
			if step.Remedy == "" {
				step.Remedy = o.cause.Remedy()
			}
		}
		r.Steps[i] = step
	}
}
