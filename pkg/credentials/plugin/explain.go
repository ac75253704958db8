// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// explain prints the request and the steps that the plugin would take. Of flags
// and of the cluster's config it prints only the names: only the plugin knows
// which values may be shown. The request is optional.
func explain(ctx context.Context, p Plugin, flags *flag.FlagSet, env []string, stdout io.Writer) error {
	var request Request
	var err error
	if lookup(env, execInfoVariable) != "" {
		if request, err = parseRequest(env); err != nil {
			return err
		}
	}
	steps := []string{"obtain a credential (the plugin gives no details)"}
	if e, ok := p.(Explainer); ok {
		steps, err = callWithGrace(ctx, func() ([]string, error) { return e.Explain(ctx, request) })
	}

	var out strings.Builder
	fmt.Fprintf(&out, "%s %s\n", p.Name(), p.Version())
	fmt.Fprintf(&out, "request: %s\n", describeRequest(request))
	if request.Cluster != nil {
		fmt.Fprintf(&out, "server: %s\n", describeServer(request.Cluster.Server))
		fmt.Fprintf(&out, "config: %s\n", describeConfig(request.Cluster.Config))
	}
	fmt.Fprintf(&out, "flags: %s\n", describeFlags(flags))
	if len(steps) > 0 {
		fmt.Fprint(&out, "would:\n")
	}
	for _, step := range steps {
		fmt.Fprintf(&out, "- %s\n", strings.Join(strings.Fields(step), " "))
	}
	if _, writeErr := io.WriteString(stdout, out.String()); err == nil && writeErr != nil {
		err = fmt.Errorf("printing the explanation: %w", writeErr)
	}
	return err
}

func describeRequest(request Request) string {
	switch {
	case request.apiVersion == "":
		return "none, " + execInfoVariable + " is not set"
	case request.Cluster == nil:
		return request.apiVersion + ", without cluster information"
	}
	return request.apiVersion
}

func describeServer(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return "not a URL"
	}
	return u.Redacted()
}

func describeConfig(config json.RawMessage) string {
	var fields map[string]json.RawMessage
	switch err := json.Unmarshal(config, &fields); {
	case len(config) == 0:
		return "none"
	case err != nil:
		return "not an object"
	case len(fields) == 0:
		return "empty"
	}
	return "with " + strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
}

func describeFlags(flags *flag.FlagSet) string {
	var names []string
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "explain" {
			names = append(names, "--"+f.Name)
		}
	})
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
