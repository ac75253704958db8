// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// authority is the certificate authority of a cluster.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	a.certificate, a.key, a.pem = a.sign(template, template, nil)
	return a
}

// server returns the certificate and the key of an API server.
func (a *authority) server(node string) (certificate, key []byte) {
	a.t.Helper()
	_, private, certificate := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, DNSNames: []string{node, "localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.certificate, a.key)
	return certificate, a.encode(private)
}

// client returns the certificate and the key of an administrator.
func (a *authority) client() (certificate, key []byte) {
	a.t.Helper()
	_, private, certificate := a.sign(&x509.Certificate{
		Subject:  pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.certificate, a.key)
	return certificate, a.encode(private)
}

// sign returns a certificate with a new key. It is signed with that key if there is none
// of the parent.
func (a *authority) sign(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.check(err)
	if signer == nil {
		signer = key
	}
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	a.check(err)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	a.check(err)
	certificate, err := x509.ParseCertificate(der)
	a.check(err)
	return certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// encode returns a key in the format that kube-apiserver also reads public keys from.
func (a *authority) encode(key *ecdsa.PrivateKey) []byte {
	a.t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	a.check(err)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func (a *authority) check(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}
