// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	v1      = "client.authentication.k8s.io/v1"
	v1beta1 = "client.authentication.k8s.io/v1beta1"

	// largeRequest is a request's length in bytes that still fits into the
	// 128 KiB which Linux allows for a variable.
	largeRequest = 100 << 10
)

// request returns the request for the cluster as clients write it.
func request(apiVersion string, cluster *plugin.Cluster) (string, error) {
	spec := map[string]any{"interactive": false}
	if cluster != nil {
		spec["cluster"] = cluster
	}
	text, err := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": apiVersion, "spec": spec})
	return string(text), err
}

// laterRequest adds fields to the request that no version has yet.
func laterRequest(apiVersion string, cluster *plugin.Cluster) (string, error) {
	text, err := request(apiVersion, cluster)
	if err != nil {
		return "", err
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return "", err
	}
	object["metadata"] = map[string]any{"creationTimestamp": nil}
	if spec, ok := object["spec"].(map[string]any); ok {
		spec["fieldOfALaterVersion"] = map[string]any{"a": 1}
		if cluster, ok := spec["cluster"].(map[string]any); ok {
			cluster["field-of-a-later-version"] = []string{"a"}
		}
	}
	later, err := json.Marshal(object)
	return string(later), err
}

// bulky returns the cluster with so many certificates that the request for it is
// a large one.
func bulky(cluster *plugin.Cluster) (*plugin.Cluster, error) {
	large := *cluster
	if len(large.CAData) == 0 {
		certificate, err := newCertificate()
		if err != nil {
			return nil, err
		}
		large.CAData = certificate
	}
	one := append(bytes.TrimSpace(large.CAData), '\n')
	room := largeRequest - len(large.Config) - len(large.Server)
	large.CAData = bytes.Repeat(one, max(1, room*3/4/len(one)))
	return &large, nil
}

// newCertificate returns a certificate authority's, in PEM form.
func newCertificate() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "plugintest"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
