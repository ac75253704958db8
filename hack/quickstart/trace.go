// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"errors"
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

// anyToken is how every token of a Kubernetes service account begins: {"alg" in base64.
// The tokens that the controller's plugin requested are not known here.
const anyToken = "eyJhbGci"

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
		if m.Token != "" {
			tokens = append(tokens, m.Token)
		}
	}
	traces := []string{anyToken}
	for _, token := range tokens {
		if !strings.HasPrefix(token, anyToken) {
			return fmt.Errorf("a token does not begin with %q: other tokens cannot be found", anyToken)
		}
		traces = append(traces, tracesOf(token)...)
	}
	for _, trace := range traces {
		switch {
		case q.controller.stdout.Contains(trace), q.controller.stderr.Contains(trace):
			return errors.New("found a token in the controller's output")
		case strings.Contains(profiles, trace):
			return errors.New("found a token in a ClusterProfile")
		}
	}
	r.Explain("Searched for %d tokens, and for the beginning of any other, in %d lines,", len(tokens),
		q.controller.stdout.Len()+q.controller.stderr.Len())
	r.Explain("logged at the highest verbosity.")
	return nil
}
