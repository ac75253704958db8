// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
)

// Reason is why a cluster is in its state.
type Reason string

// The reasons are documented in package fleet.
const (
	Added                 Reason = "Added"
	WaitingForStartupSlot Reason = "WaitingForStartupSlot"
	DuplicateName         Reason = "DuplicateName"
	DuplicateCluster      Reason = "DuplicateCluster"
	AccessChanged         Reason = "AccessChanged"
	IdentityChanged       Reason = "IdentityChanged"
	ResolvingAccess       Reason = "ResolvingAccess"
	CheckingIdentity      Reason = "CheckingIdentity"
	SyncingCaches         Reason = "SyncingCaches"
	Engaging              Reason = "Engaging"
	Engaged               Reason = "Engaged"
	AccessUpdateFailed    Reason = "AccessUpdateFailed"
	ResolveFailed         Reason = "ResolveFailed"
	Unreachable           Reason = "Unreachable"
	CertificateInvalid    Reason = "CertificateInvalid"
	Unauthorized          Reason = "Unauthorized"
	TooManyRequests       Reason = "TooManyRequests"
	UnexpectedResponse    Reason = "UnexpectedResponse"
	SetupFailed           Reason = "SetupFailed"
	CacheSyncTimeout      Reason = "CacheSyncTimeout"
	EngageFailed          Reason = "EngageFailed"
	CacheStopped          Reason = "CacheStopped"
	HealthProbeFailed     Reason = "HealthProbeFailed"
	Removed               Reason = "Removed"
)

var (
	errAccessChanged = errors.New("access changed while connecting")
	errCannotSwitch  = errors.New("access changed, and the connection cannot be switched")
	errCacheStopped  = errors.New("the cluster's caches have stopped")
)

// identityError is the error of a connection to a cluster that is not, or cannot be
// shown to be, the one that is engaged.
type identityError struct {
	old, new identity.Identity
}

func (e *identityError) Error() string {
	if e.new.Conflicts(e.old) {
		return fmt.Sprintf("cluster identity changed from %v to %v", e.old, e.new)
	}
	return fmt.Sprintf("cluster identity cannot be verified: was %v, is %v", e.old, e.new)
}

// failure is an error with the reason that the status shows.
type failure struct {
	error
	reason Reason
}

func (f *failure) Unwrap() error { return f.error }

// withReason adds the reason unless the error has one.
func withReason(reason Reason, err error) error {
	if _, ok := errors.AsType[*failure](err); ok || err == nil {
		return err
	}
	return &failure{err, reason}
}

// reasonOf returns the reason of the error that ended an attempt or a session.
func reasonOf(err error) Reason {
	f, hasReason := errors.AsType[*failure](err)
	_, identityChanged := errors.AsType[*identityError](err)
	switch {
	case errors.Is(err, errAccessChanged), errors.Is(err, errCannotSwitch):
		return AccessChanged
	case identityChanged:
		return IdentityChanged
	case errors.Is(err, errCacheStopped):
		return CacheStopped
	case hasReason:
		return f.reason
	default:
		return EngageFailed // the attempt ended after everything else had succeeded
	}
}

// isChange reports whether the cluster should be connected again at once.
func isChange(err error) bool {
	_, identityChanged := errors.AsType[*identityError](err)
	return identityChanged || errors.Is(err, errAccessChanged) || errors.Is(err, errCannotSwitch)
}

// isDenied reports whether a rule no longer lets the profile use its access. That
// ends the access in use, too. The digest of a plugin does not.
func isDenied(err error) bool {
	_, failedRun := errors.AsType[*credentials.RunError](err)
	return errors.Is(err, credentials.ErrDenied) && !failedRun
}

// probeReason returns the reason of a failed probe.
func probeReason(err error) Reason {
	_, noCredential := errors.AsType[*credentials.Error](err)
	_, badCertificate := errors.AsType[*identity.CertificateError](err)
	switch {
	case noCredential:
		return ResolveFailed
	case badCertificate:
		return CertificateInvalid
	case identity.IsUnauthorized(err):
		return Unauthorized
	case identity.IsBusy(err):
		return TooManyRequests
	case identity.IsUnexpectedResponse(err):
		return UnexpectedResponse
	default:
		return Unreachable
	}
}

// withCause adds the cause of the context's end, such as a time limit, to an error
// that it has caused.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
