// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// check is one expectation. Its name is a sentence about the plugin.
type check struct {
	name string
	run  func(ctx context.Context, s *suite) error
}

func checks() []check {
	return []check{
		{"prints v1 for a request in v1", printsVersion(v1)},
		{"prints v1beta1 for a request in v1beta1", printsVersion(v1beta1)},
		{"accepts a request of a hundred kilobytes", acceptsLargeRequest},
		{"ignores unknown fields of the request", ignoresUnknownFields},
		{"runs many times concurrently", runsConcurrently},
		{"does not wait for standard input", ignoresStandardInput},
		{"works or fails cleanly without a request", worksOrFailsWithoutRequest},
		{"works or fails cleanly without cluster information", worksOrFails(nil)},
		{"works or fails cleanly for a cluster without a server", worksOrFails(&plugin.Cluster{})},
		{"works or fails cleanly for an unexpected config", worksOrFailsForConfigs},
		{"fails cleanly for an invalid request", rejectsInvalidRequests},
		{"fails cleanly if standard output cannot be written", noticesFullDevice},
		{"fails cleanly for an unknown flag", rejectsUnknownFlag},
		{"prints help without a request", printsHelp},
		{"stops soon after SIGTERM", stopsAfter(syscall.SIGTERM)},
		{"stops soon after SIGINT", stopsAfter(syscall.SIGINT)},
	}
}

// expect runs the plugin once and verifies the outcome.
func (s *suite) expect(ctx context.Context, v variation, verify func(*outcome) error) error {
	o, err := s.run(ctx, v)
	if err != nil {
		return err
	}
	return verify(o)
}

func printsVersion(apiVersion string) func(context.Context, *suite) error {
	return func(ctx context.Context, s *suite) error {
		return s.expect(ctx, variation{request: requestFor(apiVersion, s.command.Cluster)}, succeeded(apiVersion))
	}
}

func acceptsLargeRequest(ctx context.Context, s *suite) error {
	request, err := largeRequestFor(*s.command.Cluster)
	if err != nil {
		return err
	}
	return s.expect(ctx, variation{request: request}, succeeded(v1))
}

func ignoresUnknownFields(ctx context.Context, s *suite) error {
	return s.expect(ctx, variation{request: withUnknownFields(requestFor(v1, s.command.Cluster))}, succeeded(v1))
}

func runsConcurrently(ctx context.Context, s *suite) error {
	var group errgroup.Group
	for range 8 {
		group.Go(func() error { return printsVersion(v1)(ctx, s) })
	}
	return group.Wait()
}

func ignoresStandardInput(ctx context.Context, s *suite) error {
	stdin, silent, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _, _ = stdin.Close(), silent.Close() }()
	return s.expect(ctx, variation{request: requestFor(v1, s.command.Cluster), stdin: stdin}, succeeded(v1))
}

// worksOrFailsWithoutRequest accepts output in any version.
func worksOrFailsWithoutRequest(ctx context.Context, s *suite) error {
	return s.expect(ctx, variation{}, func(o *outcome) error {
		if succeeded(v1beta1)(o) == nil {
			return nil
		}
		return succeededOrFailed(o)
	})
}

// worksOrFails is for requests that only some plugins can serve.
func worksOrFails(cluster *plugin.Cluster) func(context.Context, *suite) error {
	return func(ctx context.Context, s *suite) error {
		return s.expect(ctx, variation{request: requestFor(v1, cluster)}, succeededOrFailed)
	}
}

func worksOrFailsForConfigs(ctx context.Context, s *suite) error {
	var errs []error
	for _, config := range []string{
		`null`, `{}`, `[]`, `5`, `"text"`, `{"plugintest.invalid":{"a":[1,2,{"b":null}]}}`,
		strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000),
	} {
		cluster := *s.command.Cluster
		cluster.Config = json.RawMessage(config)
		if err := worksOrFails(&cluster)(ctx, s); err != nil {
			errs = append(errs, fmt.Errorf("config %.60s: %w", config, err))
		}
	}
	return errors.Join(errs...)
}

func rejectsInvalidRequests(ctx context.Context, s *suite) error {
	valid := requestFor(v1, s.command.Cluster)
	var errs []error
	for _, invalid := range []struct{ name, request string }{
		{"not JSON", "hello"},
		{"truncated", valid[:len(valid)/2]},
		{"not an object", "[]"},
		{"an empty object", "{}"},
		{"of another kind", strings.Replace(valid, `"ExecCredential"`, `"Pod"`, 1)},
		{"in an unknown version", strings.Replace(valid, `"`+v1+`"`, `"client.authentication.k8s.io/v9"`, 1)},
		{"of a wrong type", `{"kind":"ExecCredential","apiVersion":"` + v1 + `","spec":{"cluster":5}}`},
	} {
		if err := s.expect(ctx, variation{request: invalid.request}, (*outcome).failed); err != nil {
			errs = append(errs, fmt.Errorf("request that is %s: %w", invalid.name, err))
		}
	}
	return errors.Join(errs...)
}

// noticesFullDevice needs /dev/full, which not every system has.
func noticesFullDevice(ctx context.Context, s *suite) error {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = full.Close() }()
	return s.expect(ctx, variation{request: requestFor(v1, s.command.Cluster), stdout: full}, (*outcome).failed)
}

func rejectsUnknownFlag(ctx context.Context, s *suite) error {
	v := variation{request: requestFor(v1, s.command.Cluster), args: []string{"--no-plugin-has-this-flag"}}
	return s.expect(ctx, v, (*outcome).failed)
}

func printsHelp(ctx context.Context, s *suite) error {
	return s.expect(ctx, variation{args: []string{"--help"}}, func(o *outcome) error {
		switch {
		case o.code != 0:
			return o.exitError()
		case len(o.stdout) == 0:
			return errors.New("nothing on standard output")
		}
		return s.checkNoSecret("the help", o.stdout)
	})
}

// stopsAfter is skipped on systems without such signals.
func stopsAfter(signal os.Signal) func(context.Context, *suite) error {
	const limit = 5 * time.Second
	return func(ctx context.Context, s *suite) error {
		if runtime.GOOS == "windows" {
			return nil
		}
		command := s.command
		v := variation{command: &command, request: requestFor(v1, s.command.Cluster), signal: signal}
		if s.command.Stall != nil {
			v.waiting = s.command.Stall(&command)
		}
		return s.expect(ctx, v, func(o *outcome) error {
			switch {
			case o.sinceSignal > limit:
				return fmt.Errorf("it stopped only after %s", o.sinceSignal.Round(time.Millisecond))
			case o.code == 0:
				return succeeded(v1)(o)
			case len(o.stdout) > 0:
				return errors.New("it left partial output on standard output")
			}
			return o.checkStderr()
		})
	}
}
