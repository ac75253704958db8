// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// Impersonation is a service account to impersonate. The zero value means none.
type Impersonation struct {
	// Account is the email or unique ID of the service account.
	Account string

	// Delegates are the service accounts of the delegation chain, from the one
	// that the application default credentials may impersonate to the one that
	// may impersonate Account.
	Delegates []string
}

// parseImpersonation parses the format of String.
func parseImpersonation(text string) (Impersonation, error) {
	members := strings.Split(text, ",")
	for _, member := range members {
		if err := checkAccount(member); err != nil {
			return Impersonation{}, err
		}
	}
	last := len(members) - 1
	return Impersonation{Account: members[last], Delegates: members[:last:last]}, nil
}

// String returns the delegates and the account, separated by commas.
func (i Impersonation) String() string {
	return strings.Join(append(slices.Clip(i.Delegates), i.Account), ",")
}

// config is the config in a profile.
type config struct {
	ImpersonateServiceAccount string `json:"impersonateServiceAccount"`
}

// choose returns the impersonation that the profile names, if a flag allows it,
// or else that of the flag.
func (p *Plugin) choose(request plugin.Request) (Impersonation, error) {
	var c config
	if request.Cluster != nil && !isNull(request.Cluster.Config) {
		var err error
		if c, err = plugin.DecodeConfig[config](request); err != nil {
			return Impersonation{}, err
		}
	}
	wanted := c.ImpersonateServiceAccount
	switch {
	case wanted == "" || wanted == p.Impersonate.Account:
		return p.Impersonate, nil
	case checkAccount(wanted) != nil:
		return Impersonation{}, fmt.Errorf("%w: config of the cluster: impersonateServiceAccount is not a service account", plugin.ErrBadRequest)
	}
	i := slices.IndexFunc(p.AllowedImpersonations, func(allowed Impersonation) bool { return allowed.Account == wanted })
	if i < 0 {
		return Impersonation{}, fmt.Errorf("the profile must not impersonate %s, see --allowed-service-account", wanted)
	}
	return p.AllowedImpersonations[i], nil
}

func isNull(raw json.RawMessage) bool {
	text := strings.TrimSpace(string(raw))
	return text == "" || text == "null"
}

var (
	accountForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(@[A-Za-z0-9][A-Za-z0-9.:-]*)?$`)
	domainForm  = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+$`)
)

// checkAccount rejects characters that could change the URL with the account.
func checkAccount(text string) error {
	if !accountForm.MatchString(text) {
		return fmt.Errorf("%q is neither the email nor the ID of a service account", text)
	}
	return nil
}

func checkDomain(text string) error {
	if !domainForm.MatchString(text) {
		return errors.New("not a domain")
	}
	return nil
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.RawQuery != "" || u.User != nil {
		return errors.New("not the http or https URL of a server")
	}
	return nil
}
