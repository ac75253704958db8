// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// execInfoVariable is the environment variable with the request.
const execInfoVariable = "KUBERNETES_EXEC_INFO"

// Versions of the protocol.
const (
	apiVersionV1      = "client.authentication.k8s.io/v1"
	apiVersionV1beta1 = "client.authentication.k8s.io/v1beta1"
)

// ErrBadRequest says that what the plugin was asked cannot be understood. Run
// ends with ExitBadRequest for it.
var ErrBadRequest = errors.New("bad request")

// Request is what a plugin is asked for.
type Request struct {
	// Cluster is the cluster that the credential is for. It is nil where the
	// caller gives no cluster information: in a provider file that is
	// provideClusterInfo.
	Cluster *Cluster

	// apiVersion is the version to answer in.
	apiVersion string
}

// Cluster is the cluster that a credential is for.
type Cluster struct {
	// Server is the URL of its API server.
	Server string `json:"server"`

	// TLSServerName is the name to be expected in the server's certificate, or
	// "" for the host of Server.
	TLSServerName string `json:"tls-server-name"`

	// InsecureSkipTLSVerify says that the server's certificate is not verified.
	InsecureSkipTLSVerify bool `json:"insecure-skip-tls-verify"`

	// CAData has the certificates, in PEM form, that the server's is verified
	// with. Without any it is the system's.
	CAData []byte `json:"certificate-authority-data"`

	// ProxyURL is the proxy in front of the server, or "".
	ProxyURL string `json:"proxy-url"`

	// DisableCompression says that responses are not compressed.
	DisableCompression bool `json:"disable-compression"`

	// Config is what the cluster's profile says to the plugin, in JSON: the
	// extension client.authentication.k8s.io/exec. See DecodeConfig.
	Config json.RawMessage `json:"config"`
}

// DecodeConfig decodes the cluster's Config, see Request.DecodeConfig.
func DecodeConfig[T any](request Request) (T, error) {
	var config T
	err := request.DecodeConfig(&config)
	return config, err
}

// DecodeConfig decodes the cluster's Config into what the pointer points to. A
// request without cluster information, one without a Config, fields that are
// unknown or in another case, and values of a wrong type are errors, which name
// the field and are ErrBadRequest.
func (r Request) DecodeConfig(into any) error {
	if r.Cluster == nil {
		return fmt.Errorf("%w: no cluster information: the caller has to set provideClusterInfo", ErrBadRequest)
	}
	if config := bytes.TrimSpace(r.Cluster.Config); len(config) == 0 || string(config) == "null" {
		return fmt.Errorf("%w: the cluster has no config for the plugin: its profile lacks the extension client.authentication.k8s.io/exec", ErrBadRequest)
	}
	decoder := json.NewDecoder(bytes.NewReader(r.Cluster.Config))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, extra := decoder.Token(); extra != io.EOF {
			err = errors.New("there is more than one value")
		}
	}
	if err == nil {
		err = checkNames(r.Cluster.Config, reflect.TypeOf(into))
	}
	if err != nil {
		return fmt.Errorf("%w: config of the cluster: %s", ErrBadRequest, describe(err))
	}
	return nil
}

// describe says what is wrong in words of the configuration, not of Go.
func describe(err error) string {
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrongType.Field == "" {
			return fmt.Sprintf("must not be of type %s", kindOf(wrongType.Value))
		}
		return fmt.Sprintf("field %q must not be of type %s", wrongType.Field, kindOf(wrongType.Value))
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// kindOf cuts the value off from "number 5".
func kindOf(value string) string {
	kind, _, _ := strings.Cut(value, " ")
	return kind
}

// parseRequest reads the request from the environment.
func parseRequest(env []string) (Request, error) {
	text, found := lookup(env, execInfoVariable)
	if !found || text == "" {
		return Request{}, fmt.Errorf("%w: %s is not set: this program is run by Kubernetes clients, see --help", ErrBadRequest, execInfoVariable)
	}
	var message struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Spec       struct {
			Cluster *Cluster `json:"cluster"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(text), &message); err != nil {
		return Request{}, fmt.Errorf("%w: %s: %s", ErrBadRequest, execInfoVariable, describe(err))
	}
	if message.Kind != "ExecCredential" {
		return Request{}, fmt.Errorf("%w: %s: kind is %q, not ExecCredential", ErrBadRequest, execInfoVariable, message.Kind)
	}
	switch message.APIVersion {
	case apiVersionV1, apiVersionV1beta1:
	default:
		return Request{}, fmt.Errorf("%w: %s: apiVersion is %q, known are %s and %s",
			ErrBadRequest, execInfoVariable, message.APIVersion, apiVersionV1, apiVersionV1beta1)
	}
	return Request{Cluster: message.Spec.Cluster, apiVersion: message.APIVersion}, nil
}

// lookup returns the last value of the variable, as the system does.
func lookup(env []string, name string) (value string, found bool) {
	for _, variable := range env {
		if v, ok := strings.CutPrefix(variable, name+"="); ok {
			value, found = v, true
		}
	}
	return value, found
}
