// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
)

// execInfoVariable is the environment variable that contains the request.
const execInfoVariable = "KUBERNETES_EXEC_INFO"

// Versions of the protocol.
const (
	apiVersionV1      = "client.authentication.k8s.io/v1"
	apiVersionV1beta1 = "client.authentication.k8s.io/v1beta1"
)

// ErrBadRequest means that the request, or the cluster's config in it, is
// invalid. Run returns ExitBadRequest for it.
var ErrBadRequest = errors.New("bad request")

// Request is the content of KUBERNETES_EXEC_INFO.
type Request struct {
	// Cluster is the cluster that the credential is for. It is nil if the
	// caller sends no cluster information, which provideClusterInfo in the
	// provider file controls.
	Cluster *Cluster

	// apiVersion is the version of the output.
	apiVersion string
}

// Cluster is the cluster that a credential is for.
type Cluster struct {
	// Server is the URL of its API server.
	Server string `json:"server"`

	// TLSServerName is the name that the server's certificate must have. Empty
	// means the host of Server.
	TLSServerName string `json:"tls-server-name"`

	// InsecureSkipTLSVerify means that the server's certificate is not verified.
	InsecureSkipTLSVerify bool `json:"insecure-skip-tls-verify"`

	// CAData has the trusted certificate authorities in PEM form. Empty means
	// those of the system.
	CAData []byte `json:"certificate-authority-data"`

	// ProxyURL is the proxy for requests to the server, or "".
	ProxyURL string `json:"proxy-url"`

	// DisableCompression means that responses are not compressed.
	DisableCompression bool `json:"disable-compression"`

	// Config is the profile's config for the plugin, in JSON: the extension
	// client.authentication.k8s.io/exec. See DecodeConfig.
	Config json.RawMessage `json:"config"`
}

// DecodeConfig decodes the Config of the request's cluster. Decoding is strict:
// missing cluster information, a missing Config, values of a wrong type, and
// fields that are unknown, repeated or in another case are errors, which wrap
// ErrBadRequest.
func DecodeConfig[T any](request Request) (T, error) {
	var config T
	if request.Cluster == nil {
		return config, fmt.Errorf("%w: no cluster information: provideClusterInfo must be set", ErrBadRequest)
	}
	if raw := bytes.TrimSpace(request.Cluster.Config); len(raw) == 0 || string(raw) == "null" {
		return config, fmt.Errorf("%w: the cluster has no config for the plugin: its profile lacks the extension client.authentication.k8s.io/exec", ErrBadRequest)
	}
	if err := rules.Decode(request.Cluster.Config, &config); err != nil {
		return config, fmt.Errorf("%w: config of the cluster: %s", ErrBadRequest, describe(err))
	}
	return config, nil
}

// describe returns the text of an error of the JSON decoder, without Go types.
func describe(err error) string {
	wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	kind, _, _ := strings.Cut(wrongType.Value, " ") // without the 5 of "number 5"
	if wrongType.Field == "" {
		return "must not be of type " + kind
	}
	return fmt.Sprintf("field %q must not be of type %s", wrongType.Field, kind)
}

// parseRequest reads the request from the environment.
func parseRequest(env []string) (Request, error) {
	text := lookup(env, execInfoVariable)
	if text == "" {
		return Request{}, fmt.Errorf("%w: %s is not set: Kubernetes clients run this program, see --help", ErrBadRequest, execInfoVariable)
	}
	var message struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Spec       struct {
			Cluster *Cluster `json:"cluster"`
		} `json:"spec"`
	}
	// Later versions of the protocol may have more fields.
	if err := rules.DecodeKnown([]byte(text), &message); err != nil {
		return Request{}, fmt.Errorf("%w: %s: %s", ErrBadRequest, execInfoVariable, describe(err))
	}
	if message.Kind != "ExecCredential" {
		return Request{}, fmt.Errorf("%w: %s: kind is %q, not ExecCredential", ErrBadRequest, execInfoVariable, message.Kind)
	}
	if message.APIVersion != apiVersionV1 && message.APIVersion != apiVersionV1beta1 {
		return Request{}, fmt.Errorf("%w: %s: apiVersion is %q, must be %s or %s",
			ErrBadRequest, execInfoVariable, message.APIVersion, apiVersionV1, apiVersionV1beta1)
	}
	return Request{Cluster: message.Spec.Cluster, apiVersion: message.APIVersion}, nil
}

// lookup returns the last value of the variable, as the system does, or "".
func lookup(env []string, name string) string {
	value := ""
	for _, variable := range env {
		if v, ok := strings.CutPrefix(variable, name+"="); ok {
			value = v
		}
	}
	return value
}
