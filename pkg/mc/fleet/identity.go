// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// identity is what tells one cluster from another.
type identity struct {
	// uid is that of the namespace kube-system, "" if it cannot be read.
	uid string
	// clusterID is the profile's (KEP-2149), "" if it gives none.
	clusterID string
}

// same tells whether two identities are known to be those of one cluster. The
// UID comes from the cluster itself, so it counts before what a profile says.
func (i identity) same(other identity) bool {
	if i.uid != "" && other.uid != "" {
		return i.uid == other.uid
	}
	return i.clusterID != "" && i.clusterID == other.clusterID
}

// differs tells whether two identities are known to be those of two clusters.
func (i identity) differs(other identity) bool {
	if i.uid != "" && other.uid != "" {
		return i.uid != other.uid
	}
	return i.clusterID != "" && other.clusterID != "" && i.clusterID != other.clusterID
}

// maxIdentityBytes bounds what is read of a namespace.
const maxIdentityBytes = 1 << 20

// identify asks the target who it is, which also shows that it answers and
// takes the credentials. Not being allowed to read the namespace, or not having
// it, is an answer if it comes from an API server.
func (t *target) identify(ctx context.Context, profile *inventory.Profile) (identity, error) {
	id := identity{clusterID: inventory.ClusterID(profile)}
	u := t.server.JoinPath("api/v1/namespaces", metav1.NamespaceSystem)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return id, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := t.transport.RoundTrip(req)
	if _, ours := errors.AsType[*credentials.Error](err); ours {
		return id, because(ResolveFailed, err) // it has not been asked
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return id, because(Untrusted, fmt.Errorf("%s is not trusted: %w", t.shown, err))
	}
	if err != nil {
		return id, fmt.Errorf("%s does not answer: %w", t.shown, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxIdentityBytes))
	if err != nil {
		return id, fmt.Errorf("%s does not answer: %w", t.shown, err)
	}

	switch resp.StatusCode {
	case http.StatusOK:
		var namespace corev1.Namespace
		if err := json.Unmarshal(body, &namespace); err != nil || namespace.Kind != "Namespace" {
			return id, because(UnexpectedAnswer, fmt.Errorf("%s does not answer as a Kubernetes API server does", t.shown))
		}
		id.uid = string(namespace.UID)
		return id, nil
	case http.StatusForbidden, http.StatusNotFound:
		// What an API server says; a proxy on the way to it says something else.
		var status metav1.TypeMeta
		if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" {
			return id, &answerError{server: t.shown, code: resp.StatusCode}
		}
		return id, nil
	case http.StatusUnauthorized:
		return id, fmt.Errorf("%s %w", t.shown, errUnauthorized)
	default:
		return id, &answerError{server: t.shown, code: resp.StatusCode}
	}
}

var errUnauthorized = errors.New("does not accept the credentials (401)")

// isUnauthorized tells whether the error is that of a cluster which does not
// know who asks.
func isUnauthorized(err error) bool {
	return errors.Is(err, errUnauthorized) || apierrors.IsUnauthorized(err)
}

// answerError is for an answer that tells nothing of who gives it.
type answerError struct {
	server string
	code   int
}

func (e *answerError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.server, e.code, http.StatusText(e.code))
}

// isBusy tells whether the error is that of a cluster which lives but has no
// time for the question.
func isBusy(err error) bool {
	var unexpected *answerError
	return errors.As(err, &unexpected) && unexpected.code == http.StatusTooManyRequests
}
