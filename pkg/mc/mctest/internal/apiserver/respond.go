// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var statusKind = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}

// statusOf returns the status that a client receives for an error.
func statusOf(err error) *metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = statusKind
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	return &status
}

// unexplained is an error for which a real server gives no reason.
func unexplained(message string) error {
	return statusError(http.StatusInternalServerError, "", message)
}

func statusError(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// withDetails adds empty details, as a real server does.
func withDetails(err *apierrors.StatusError) *apierrors.StatusError {
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

func writeError(w http.ResponseWriter, err error) {
	status := statusOf(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	writeJSON(w, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, code, runtime.ContentTypeJSON, raw)
}

func write(w http.ResponseWriter, code int, contentType string, raw []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(code)
	// A client that has disconnected cannot be informed.
	_, _ = w.Write(raw)
}
