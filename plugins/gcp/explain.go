// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// Explain implements plugin.Explainer.
func (p *Plugin) Explain(_ context.Context, request plugin.Request) ([]string, error) {
	chain, err := p.choose(request)
	if err != nil {
		return nil, err
	}
	source, err := p.findSource()
	if err != nil {
		return nil, err
	}
	var steps []string
	if p.Cache.Dir != "" {
		steps = append(steps, "look for a token in "+p.Cache.Dir)
	}
	ask := "ask for an access token with " + source.String()
	if source.path == "" && p.Account != "" {
		ask += " for " + p.Account
	}
	steps = append(steps, ask)
	if chain.Account != "" {
		step := fmt.Sprintf("impersonate %s at %s", chain.Account, p.iamURL(source))
		if len(chain.Delegates) > 0 {
			step += " by way of " + strings.Join(chain.Delegates, ", ")
		}
		if project := p.quotaProject(source); project != "" {
			step += ", paid by project " + project
		}
		steps = append(steps, step)
	}
	return append(steps, "scopes are "+strings.Join(p.Scopes, ", ")), nil
}
