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
	step := "get an access token from " + source.String()
	if source.path == "" && p.Account != "" {
		step += " for " + p.Account
	}
	steps = append(steps, step)
	if chain.Account != "" {
		step = fmt.Sprintf("impersonate %s at %s", chain.Account, p.iamURL(source))
		if len(chain.Delegates) > 0 {
			step += " via " + strings.Join(chain.Delegates, ", ")
		}
		if project := p.quotaProject(source); project != "" {
			step += ", billed to project " + project
		}
		steps = append(steps, step)
	}
	return append(steps, "scopes are "+strings.Join(p.Scopes, ", ")), nil
}
