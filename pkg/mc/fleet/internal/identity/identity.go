// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity reads and compares the identities of clusters.
package identity

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

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

// object has the fields of a response that a probe needs.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		UID string `json:"uid"`
	} `json:"metadata"`
}

// readBody reads the body into a buffer of its length, where that is known.
func readBody(response *http.Response) ([]byte, error) {
	var body bytes.Buffer
	if n := response.ContentLength; n > 0 && n <= maxResponseBytes {
		body.Grow(int(n) + bytes.MinRead)
	}
	_, err := body.ReadFrom(io.LimitReader(response.Body, maxResponseBytes))
	return body.Bytes(), err
}

func noResponse(server *url.URL, err error) error {
	return fmt.Errorf("no response from %s: %w", Redact(server.String()), err)
}

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
	response, err := transport.RoundTrip(request)
	if _, ok := errors.AsType[*credentials.Error](err); ok {
		return "", err
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "", &CertificateError{server: Redact(server.String()), err: err}
	}
	if err != nil {
		return "", noResponse(server, err)
	}
	defer response.Body.Close()
	body, err := readBody(response)
	if err != nil {
		return "", noResponse(server, err)
	}

	switch response.StatusCode {
	case http.StatusOK:
		var namespace object
		if err := json.Unmarshal(body, &namespace); err != nil || namespace.Kind != "Namespace" {
			return "", &ResponseError{server: Redact(server.String())}
		}
		return namespace.Metadata.UID, nil
	case http.StatusForbidden, http.StatusNotFound:
		// API servers send a Status; proxies in front of them do not.
		var status object
		if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" {
			return "", &ResponseError{server: Redact(server.String()), code: response.StatusCode}
		}
		return "", nil
	case http.StatusUnauthorized:
		return "", fmt.Errorf("%s %w", Redact(server.String()), ErrUnauthorized)
	default:
		return "", &ResponseError{server: Redact(server.String()), code: response.StatusCode, retryAfter: retryAfter(response)}
	}
}

func retryAfter(response *http.Response) time.Duration {
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > int(maxRetryAfter/time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// maxRetryAfter is the longest delay that a server can reasonably ask for.
const maxRetryAfter = 24 * time.Hour

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

	retryAfter time.Duration // that the server asks for, 0 if it does not
}

func (e *ResponseError) Error() string {
	switch e.code {
	case 0:
		return fmt.Sprintf("the response of %s is not from a Kubernetes API server", e.server)
	case http.StatusTooManyRequests:
		return fmt.Sprintf("%s has too many requests (429)", e.server)
	}
	return fmt.Sprintf("%s responded with %d %s", e.server, e.code, http.StatusText(e.code))
}

// IsBusy reports whether the cluster responds, but has too many requests.
func IsBusy(err error) bool {
	unexpected, ok := errors.AsType[*ResponseError](err)
	return ok && unexpected.code == http.StatusTooManyRequests || apierrors.IsTooManyRequests(err)
}

// RetryAfter returns how long the server asks to wait before the next request, 0 if
// it does not.
func RetryAfter(err error) time.Duration {
	if unexpected, ok := errors.AsType[*ResponseError](err); ok {
		return unexpected.retryAfter
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return time.Duration(seconds) * time.Second
	}
	return 0
}

// IsUnexpectedResponse reports whether something responded, but not as a healthy
// API server does.
func IsUnexpectedResponse(err error) bool {
	_, ok := errors.AsType[*ResponseError](err)
	var status apierrors.APIStatus
	return ok || errors.As(err, &status)
}
