// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity reads and compares the identities of clusters.
package identity

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// Identity distinguishes one cluster from another.
type Identity struct {
	// UID is the UID of the namespace kube-system, "" if it cannot be read.
	UID string
	// ClusterID is the profile's cluster ID (KEP-2149), "" if it has none.
	ClusterID string
}

// Matches reports whether both identities are known to be of one cluster. The UID
// comes from the cluster itself, so it takes precedence over the profile's claim.
func (i Identity) Matches(other Identity) bool {
	if i.UID != "" && other.UID != "" {
		return i.UID == other.UID
	}
	return i.ClusterID != "" && i.ClusterID == other.ClusterID
}

// Conflicts reports whether the identities are known to be of two clusters. If
// neither Matches nor Conflicts, the identities cannot be compared.
func (i Identity) Conflicts(other Identity) bool {
	if i.UID != "" && other.UID != "" {
		return i.UID != other.UID
	}
	return i.ClusterID != "" && other.ClusterID != "" && i.ClusterID != other.ClusterID
}

// String returns the identity for logs.
func (i Identity) String() string {
	switch {
	case i.UID != "" && i.ClusterID != "":
		return "UID " + i.UID + " (ClusterID " + i.ClusterID + ")"
	case i.UID != "":
		return "UID " + i.UID
	case i.ClusterID != "":
		return "ClusterID " + i.ClusterID
	}
	return "unknown"
}

// maxResponseBytes bounds how much of a response is read.
const maxResponseBytes = 1 << 20

// Probe reads the UID of the namespace kube-system. The UID is "" if an API server
// responds, but forbids that or has no such namespace. Errors are a
// *CertificateError, a *ResponseError, ErrUnauthorized, a *credentials.Error where
// no request was sent, or those of the connection.
func Probe(ctx context.Context, transport http.RoundTripper, server *url.URL) (uid string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.JoinPath("api/v1/namespaces", metav1.NamespaceSystem).String(), nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Accept", "application/json")
	name := Redact(server.String())
	response, err := transport.RoundTrip(request)
	if _, ok := errors.AsType[*credentials.Error](err); ok {
		return "", err
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "", &CertificateError{server: name, err: err}
	}
	if err != nil {
		return "", fmt.Errorf("no response from %s: %w", name, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	if err != nil {
		return "", fmt.Errorf("no response from %s: %w", name, err)
	}

	switch response.StatusCode {
	case http.StatusOK:
		var namespace corev1.Namespace
		if err := json.Unmarshal(body, &namespace); err != nil || namespace.Kind != "Namespace" {
			return "", &ResponseError{server: name}
		}
		return string(namespace.UID), nil
	case http.StatusForbidden, http.StatusNotFound:
		// API servers send a Status; proxies in front of them do not.
		var status metav1.TypeMeta
		if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" {
			return "", &ResponseError{server: name, code: response.StatusCode}
		}
		return "", nil
	case http.StatusUnauthorized:
		return "", fmt.Errorf("%s %w", name, ErrUnauthorized)
	default:
		return "", &ResponseError{server: name, code: response.StatusCode}
	}
}

// ErrUnauthorized is the error of a cluster that does not accept the credentials.
var ErrUnauthorized = errors.New("rejected the credentials (401)")

// IsUnauthorized reports whether the cluster does not accept the credentials.
func IsUnauthorized(err error) bool {
	return errors.Is(err, ErrUnauthorized) || apierrors.IsUnauthorized(err)
}

// CertificateError is the error of a server whose certificate cannot be verified.
type CertificateError struct {
	server string
	err    error
}

func (e *CertificateError) Error() string {
	return fmt.Sprintf("cannot verify the certificate of %s: %v", e.server, e.err)
}

func (e *CertificateError) Unwrap() error { return e.err }

// ResponseError is the error of a response that does not identify a cluster.
type ResponseError struct {
	server string
	code   int // 0 for a response that is not of an API server
}

func (e *ResponseError) Error() string {
	if e.code == 0 {
		return fmt.Sprintf("the response of %s is not from a Kubernetes API server", e.server)
	}
	return fmt.Sprintf("%s responded with %d %s", e.server, e.code, http.StatusText(e.code))
}

// IsBusy reports whether the cluster responds, but has too many requests.
func IsBusy(err error) bool {
	unexpected, ok := errors.AsType[*ResponseError](err)
	return ok && unexpected.code == http.StatusTooManyRequests
}

// IsUnexpectedResponse reports whether something responded, but not as a healthy
// API server does.
func IsUnexpectedResponse(err error) bool {
	_, ok := errors.AsType[*ResponseError](err)
	var status apierrors.APIStatus
	return ok || errors.As(err, &status)
}
