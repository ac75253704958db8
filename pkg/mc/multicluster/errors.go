// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"errors"
	"fmt"
)

var (
	// ErrClusterNotFound means that no cluster of that name is engaged. Test
	// for it with errors.Is.
	ErrClusterNotFound = errors.New("cluster not found")

	// ErrClusterNotReady means that the provider knows the cluster but has not
	// engaged it: it is still connecting, or cannot be reached. Every error
	// that is ErrClusterNotReady is ErrClusterNotFound too, so that code
	// which only knows the latter keeps working.
	ErrClusterNotReady = errors.New("cluster not ready")
)

// NotFoundError returns an error that names the cluster and is
// ErrClusterNotFound.
func NotFoundError(clusterName ClusterName) error {
	return fmt.Errorf("cluster %q: %w", clusterName, ErrClusterNotFound)
}

// NotReadyError returns an error that names the cluster, gives the reason why
// it is not engaged, and is both ErrClusterNotReady and ErrClusterNotFound.
func NotReadyError(clusterName ClusterName, reason string) error {
	return &notReadyError{clusterName: clusterName, reason: reason}
}

// NotReadyCluster returns the name of the cluster that is not ready, and whether
// the error was made by NotReadyError.
func NotReadyCluster(err error) (ClusterName, bool) {
	var notReady *notReadyError
	if !errors.As(err, &notReady) {
		return "", false
	}
	return notReady.clusterName, true
}

// TerminalError marks an error of a RestartableProvider's Start as one after which
// the provider is not started again: the manager's Start returns it.
func TerminalError(err error) error {
	return &terminalError{err: err}
}

// IsTerminal reports whether an error was marked by TerminalError.
func IsTerminal(err error) bool {
	var terminal *terminalError
	return errors.As(err, &terminal)
}

type terminalError struct {
	err error
}

func (e *terminalError) Error() string { return e.err.Error() }
func (e *terminalError) Unwrap() error { return e.err }

type notReadyError struct {
	clusterName ClusterName
	reason      string
}

func (e *notReadyError) Error() string {
	if e.reason == "" {
		return fmt.Sprintf("cluster %q: %v", e.clusterName, ErrClusterNotReady)
	}
	return fmt.Sprintf("cluster %q: %v: %s", e.clusterName, ErrClusterNotReady, e.reason)
}

func (e *notReadyError) Unwrap() []error {
	return []error{ErrClusterNotReady, ErrClusterNotFound}
}
