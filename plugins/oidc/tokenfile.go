// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	// podTokenFile has the pod's token for the hub itself.
	podTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"

	// maxTokenFile is more than the size of any token.
	maxTokenFile = 1 << 20
)

// fromFile returns the token in the file, which the kubelet replaces in time.
func (p *Plugin) fromFile(audience string) (*plugin.Credential, error) {
	own := p.HubAudiences
	switch token, err := readToken(podTokenFile); {
	case err == nil:
		if c, err := claimsOf(token); err == nil {
			own = slices.Concat(own, c.Audiences)
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("the pod's token for the hub: %w", err)
	}
	if slices.Contains(own, audience) {
		return nil, errHubAudience(audience)
	}
	token, err := readToken(p.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	credential, err := check(token, audience)
	if err != nil {
		return nil, fmt.Errorf("--token-file %s: %w: see the volume's serviceAccountToken projection; "+
			"with a subPath mount the file is never replaced", p.TokenFile, err)
	}
	return credential, nil
}

func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxTokenFile))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("%s: the file is empty", path)
	}
	return token, nil
}
