// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Reasons of the condition ControlPlaneHealthy, as ProbeCluster sets it.
const (
	// ReasonReady means that the API server is ready. The status is True.
	ReasonReady = "Ready"

	// ReasonResponding means that the API server responds, and does not allow to
	// read whether it is ready. The status is True.
	ReasonResponding = "Responding"

	// ReasonNotReady means that the API server reports that it is not ready. The
	// status is False.
	ReasonNotReady = "NotReady"

	// ReasonUnreachable means that there was no response in time. The status is False.
	ReasonUnreachable = "Unreachable"

	// ReasonUnexpectedResponse means that something else than an API server has
	// responded, such as a proxy. The status is False.
	ReasonUnexpectedResponse = "UnexpectedResponse"

	// ReasonUnauthorized means that the API server did not accept the credentials.
	// The status is Unknown.
	ReasonUnauthorized = "Unauthorized"

	// ReasonCertificateInvalid means that the certificate of the API server could not
	// be verified. The status is Unknown.
	ReasonCertificateInvalid = "CertificateInvalid"
)

// maxResponse bounds how much of a response is read, in bytes.
const maxResponse = 1 << 20

// failedCheck finds the failed checks of /readyz.
var failedCheck = regexp.MustCompile(`(?m)^\[-\]([a-zA-Z0-9/_.-]{1,100}) failed`)

// ProbeCluster reads /readyz, /version and the UID of the namespace kube-system of a
// cluster, in at most three requests. Where a cluster forbids one of them, that is not
// observed. The error is one from before a request was sent, such as that of a
// credential plugin, if it is not one of the network: then the caller wraps the
// transport so that the error does not contain one of package net.
func ProbeCluster(ctx context.Context, config *rest.Config) (ProbeResult, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return ProbeResult{}, err
	}
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return ProbeResult{}, err
	}
	client := *shared
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	ready, err := get(ctx, &client, base.JoinPath("readyz"))
	if err != nil {
		return noResponse(ctx, err)
	}
	result := ProbeResult{Status: metav1.ConditionTrue, Reason: ReasonReady}
	forbidden := false
	switch {
	case ready.code == http.StatusOK && string(bytes.TrimSpace(ready.body)) == "ok":
	case ready.code == http.StatusUnauthorized:
		return ProbeResult{Status: metav1.ConditionUnknown, Reason: ReasonUnauthorized, Message: "the API server did not accept the credentials"}, nil
	case ready.code == http.StatusTooManyRequests, (ready.code == http.StatusForbidden || ready.code == http.StatusNotFound) && ready.isStatus():
		forbidden = true
		result.Reason = ReasonResponding
	default:
		if failed := failedCheck.FindAllSubmatch(ready.body, 10); failed != nil {
			var names []string
			for _, match := range failed {
				names = append(names, string(match[1]))
			}
			return ProbeResult{Status: metav1.ConditionFalse, Reason: ReasonNotReady, Message: "failed checks: " + strings.Join(names, ", ")}, nil
		}
		return unexpected("/readyz", ready), nil
	}

	version := struct{ GitVersion string }{}
	if response, err := get(ctx, &client, base.JoinPath("version")); err == nil && response.code == http.StatusOK && json.Unmarshal(response.body, &version) == nil {
		result.KubernetesVersion = version.GitVersion
	}
	namespace := struct {
		Kind     string
		Metadata struct{ UID string }
	}{}
	response, err := get(ctx, &client, base.JoinPath("api/v1/namespaces", metav1.NamespaceSystem))
	if err != nil && forbidden {
		return noResponse(ctx, err)
	}
	switch {
	case err != nil: // the cluster was ready
	case response.code == http.StatusOK && json.Unmarshal(response.body, &namespace) == nil && namespace.Kind == "Namespace":
		result.ClusterID = namespace.Metadata.UID
	case !response.isStatus():
		return unexpected("a request for kube-system", response), nil
	}
	return result, nil
}

func unexpected(request string, r *response) ProbeResult {
	return ProbeResult{
		Status: metav1.ConditionFalse, Reason: ReasonUnexpectedResponse,
		Message: fmt.Sprintf("the response to %s is %d, and not one of a Kubernetes API server", request, r.code),
	}
}

// response is what a probe reads of one.
type response struct {
	code int
	body []byte
}

// isStatus reports whether an API server has responded, and not a proxy.
func (r *response) isStatus() bool {
	status := struct{ Kind string }{}
	return json.Unmarshal(r.body, &status) == nil && status.Kind == "Status"
}

func get(ctx context.Context, client *http.Client, target *url.URL) (*response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	r, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse))
	return &response{code: r.StatusCode, body: body}, err
}

// noResponse returns the result of a request without a response. Its message is the
// same for the same failure: it has no port of this side of the connection.
func noResponse(ctx context.Context, err error) (ProbeResult, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ProbeResult{}, ctx.Err()
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return ProbeResult{Status: metav1.ConditionUnknown, Reason: ReasonCertificateInvalid, Message: certificate.Error()}, nil
	}
	unreachable := ProbeResult{Status: metav1.ConditionFalse, Reason: ReasonUnreachable}
	var network net.Error
	operation, isOperation := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		unreachable.Message = "no response in time"
	case isOperation && operation.Op == "dial":
		unreachable.Message = fmt.Sprintf("cannot connect to %v: %v", operation.Addr, operation.Err)
	case isOperation:
		unreachable.Message = fmt.Sprintf("connection closed: %v", operation.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		unreachable.Message = "connection closed"
	default:
		// url.Error has the address, which may contain a password.
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return ProbeResult{}, err
	}
	return unreachable, nil
}
