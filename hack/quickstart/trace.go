// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// tracesOf returns the texts that identify a token (a JWT): its signature, also in
// a truncated or quoted token, and the base64 form, as in a Secret.
func tracesOf(token string) []string {
	signature := token[strings.LastIndex(token, ".")+1:]
	return []string{signature, base64.StdEncoding.EncodeToString([]byte(token))}
}

// searchTokens searches for all tokens in the controller's output and the profiles.
func (q *quickstart) searchTokens(ctx context.Context, r *report) error {
	if err := q.controller.Running(); err != nil {
		return err
	}
	var profiles string
	if h, isHub := q.source.(*hub); isHub {
		var err error
		if profiles, err = h.Profiles(ctx); err != nil {
			return err
		}
	}
	tokens := slices.Clone(q.tokens)
	for _, m := range q.members {
		tokens = append(tokens, m.Token)
	}
	for i, token := range tokens {
		for _, trace := range tracesOf(token) {
			switch {
			case q.controller.stdout.Contains(trace), q.controller.stderr.Contains(trace):
				return fmt.Errorf("found token %d in the controller's output", i)
			case strings.Contains(profiles, trace):
				return fmt.Errorf("found token %d in a ClusterProfile", i)
			}
		}
	}
	r.Explain("Searched for %d tokens in %d lines, logged at the highest verbosity.", len(tokens),
		q.controller.stdout.Len()+q.controller.stderr.Len())
	return nil
}
