// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reason says why a cluster is in its state, for programs. People read
// ClusterStatus.LastError too. More may be added.
type Reason string

const (
	// Added: Pending, its profile has just come.
	Added Reason = "Added"
	// WaitingForPlace: Pending, or Connecting if it has answered; the start-up
	// gate has no free place.
	WaitingForPlace Reason = "WaitingForPlace"
	// WaitingForName: Pending, another profile's cluster has its name, or had it
	// and has not left yet.
	WaitingForName Reason = "WaitingForName"
	// AccessChanged: Pending, or Backoff if that happens too often; the profile
	// has come to lead another way while the cluster was being connected.
	AccessChanged Reason = "AccessChanged"
	// OtherCluster: Pending, or Backoff if that happens too often; another
	// cluster is there than before, or one not known to be the same.
	OtherCluster Reason = "OtherCluster"

	// ResolvingAccess: Connecting, the credential method or the Connector works.
	ResolvingAccess Reason = "ResolvingAccess"
	// AwaitingAnswer: Connecting, the cluster is asked who it is.
	AwaitingAnswer Reason = "AwaitingAnswer"
	// SyncingCaches: Syncing, the cluster is made and its caches fill.
	SyncingCaches Reason = "SyncingCaches"
	// Engaging: Syncing, those who work with clusters are told of it.
	Engaging Reason = "Engaging"

	// Engaged: Ready.
	Engaged Reason = "Engaged"
	// NewAccessFailed: Ready by the access before; the newest cannot be used.
	NewAccessFailed Reason = "NewAccessFailed"

	// ResolveFailed: Backoff, the credential method or the Connector has failed
	// or has taken too long, or a REST option has failed; or Degraded, there is no
	// credential to ask with.
	ResolveFailed Reason = "ResolveFailed"
	// Unreachable: Backoff or Degraded, no answer has come from the cluster.
	Unreachable Reason = "Unreachable"
	// Untrusted: Backoff or Degraded, the server's certificate does not hold: it is
	// not of the certificate authority that the profile gives, or for another
	// name, or has expired.
	Untrusted Reason = "Untrusted"
	// Unauthorized: Backoff or Degraded, the cluster does not accept the
	// credentials (401).
	Unauthorized Reason = "Unauthorized"
	// UnexpectedAnswer: Backoff or Degraded, what answers does so as no API
	// server does, or as one that is not well (5xx).
	UnexpectedAnswer Reason = "UnexpectedAnswer"
	// SetupFailed: Backoff, the cluster could not be made, or not be indexed.
	SetupFailed Reason = "SetupFailed"
	// SyncTimeout: Backoff, the caches have not filled in time.
	SyncTimeout Reason = "SyncTimeout"
	// EngageFailed: Backoff, who was told of the cluster has failed, or has taken
	// too long.
	EngageFailed Reason = "EngageFailed"
	// CachesEnded: Backoff, the cluster's Start has returned.
	CachesEnded Reason = "CachesEnded"
	// Dropped: Backoff, no probe has succeeded for Probe.DropAfter.
	Dropped Reason = "Dropped"

	// Left: Leaving, the profile has gone or the fleet ends.
	Left Reason = "Left"
)

// failure is an error for a reason.
type failure struct {
	error
	reason Reason
}

func (f *failure) Unwrap() error { return f.error }

// because gives an error its reason, unless it has one.
func because(reason Reason, err error) error {
	if _, ok := errors.AsType[*failure](err); ok || err == nil {
		return err
	}
	return &failure{err, reason}
}

// reasonOf returns the reason of what ended an attempt or an engagement.
func reasonOf(err error) Reason {
	f, known := errors.AsType[*failure](err)
	switch {
	case errors.Is(err, errSuperseded):
		return AccessChanged
	case errors.Is(err, errOtherCluster):
		return OtherCluster
	case errors.Is(err, errClusterEnded):
		return CachesEnded
	case known:
		return f.reason
	default:
		return EngageFailed // in time, but for the attempt
	}
}

// whyNoAnswer returns the reason of the error with which the question failed who
// a cluster is.
func whyNoAnswer(err error) Reason {
	f, known := errors.AsType[*failure](err)
	_, unexpected := errors.AsType[*answerError](err)
	var status apierrors.APIStatus
	switch {
	case known:
		return f.reason
	case isUnauthorized(err):
		return Unauthorized
	case unexpected, errors.As(err, &status):
		return UnexpectedAnswer
	default:
		return Unreachable
	}
}

// shown returns a server's address as it may be shown: without a user.
func shown(server string) string {
	at := strings.LastIndex(server, "@")
	if at < 0 {
		return server
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return server[at+1:]
	}
	u.User = nil
	return u.String()
}
