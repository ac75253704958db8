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

// check is one thing to be found out. Its name is a sentence about the plugin.
type check struct {
	name string
	run  func(ctx context.Context, s *suite) error
}

func checks() []check {
	return []check{
		{"answers in v1 when asked in v1", answersIn(v1)},
		{"answers in v1beta1 when asked in v1beta1", answersIn(v1beta1)},
		{"takes a request of a hundred kilobytes", takesLargeRequest},
		{"ignores fields of later versions", ignoresLaterFields},
		{"runs many times at once", runsAtOnce},
		{"does not wait for standard input", ignoresStandardInput},
		{"answers or fails cleanly without a request", copesWithoutRequest},
		{"answers or fails cleanly without cluster information", copesWith(nil)},
		{"answers or fails cleanly for a cluster without a server", copesWith(&plugin.Cluster{})},
		{"answers or fails cleanly for a config that it cannot know", copesWithConfigs},
		{"fails cleanly when the request is garbage", refusesGarbage},
		{"fails cleanly when standard output cannot be written", noticesFullDevice},
		{"fails cleanly when a flag is unknown", refusesUnknownFlag},
		{"prints a help without a request", printsHelp},
		{"ends soon after SIGTERM", endsAfter(syscall.SIGTERM)},
		{"ends soon after SIGINT", endsAfter(syscall.SIGINT)},
	}
}

// ask runs the command with a request for the cluster.
func (s *suite) ask(ctx context.Context, apiVersion string, cluster *plugin.Cluster) (*outcome, error) {
	text, err := request(apiVersion, cluster)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, variation{command: s.command, request: text})
}

func answersIn(apiVersion string) func(context.Context, *suite) error {
	return func(ctx context.Context, s *suite) error {
		o, err := s.ask(ctx, apiVersion, s.command.Cluster)
		if err != nil {
			return err
		}
		return o.succeeded(apiVersion)
	}
}

func takesLargeRequest(ctx context.Context, s *suite) error {
	cluster, err := bulky(s.command.Cluster)
	if err != nil {
		return err
	}
	o, err := s.ask(ctx, v1, cluster)
	if err != nil {
		return err
	}
	return o.succeeded(v1)
}

func ignoresLaterFields(ctx context.Context, s *suite) error {
	text, err := laterRequest(v1, s.command.Cluster)
	if err != nil {
		return err
	}
	o, err := s.run(ctx, variation{command: s.command, request: text})
	if err != nil {
		return err
	}
	return o.succeeded(v1)
}

func runsAtOnce(ctx context.Context, s *suite) error {
	const runs = 8
	var group errgroup.Group
	for range runs {
		group.Go(func() error { return answersIn(v1)(ctx, s) })
	}
	return group.Wait()
}

func ignoresStandardInput(ctx context.Context, s *suite) error {
	stdin, silent, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _, _ = stdin.Close(), silent.Close() }()
	text, err := request(v1, s.command.Cluster)
	if err != nil {
		return err
	}
	o, err := s.run(ctx, variation{command: s.command, request: text, stdin: stdin})
	if err != nil {
		return err
	}
	return o.succeeded(v1)
}

// copesWithoutRequest takes an answer in any version, as none is asked for.
func copesWithoutRequest(ctx context.Context, s *suite) error {
	o, err := s.run(ctx, variation{command: s.command})
	switch {
	case err != nil:
		return err
	case o.succeeded(v1beta1) == nil:
		return nil
	}
	return o.answeredOrFailed(v1)
}

// copesWith is for requests that one plugin can answer and another cannot.
func copesWith(cluster *plugin.Cluster) func(context.Context, *suite) error {
	return func(ctx context.Context, s *suite) error {
		o, err := s.ask(ctx, v1, cluster)
		if err != nil {
			return err
		}
		return o.answeredOrFailed(v1)
	}
}

func copesWithConfigs(ctx context.Context, s *suite) error {
	var faults []error
	for _, config := range []string{
		`null`, `{}`, `[]`, `5`, `"text"`, `{"plugintest.invalid":{"a":[1,2,{"b":null}]}}`,
		strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000),
	} {
		cluster := *s.command.Cluster
		cluster.Config = json.RawMessage(config)
		if err := copesWith(&cluster)(ctx, s); err != nil {
			faults = append(faults, fmt.Errorf("config %.60s: %w", config, err))
		}
	}
	return errors.Join(faults...)
}

func refusesGarbage(ctx context.Context, s *suite) error {
	good, err := request(v1, s.command.Cluster)
	if err != nil {
		return err
	}
	var faults []error
	for _, garbage := range []struct{ name, request string }{
		{"not JSON", "hello"},
		{"half a request", good[:len(good)/2]},
		{"not an object", "[]"},
		{"an empty object", "{}"},
		{"another kind", strings.Replace(good, `"ExecCredential"`, `"Pod"`, 1)},
		{"an unknown version", strings.Replace(good, `"`+v1+`"`, `"client.authentication.k8s.io/v9"`, 1)},
		{"a wrong type", `{"kind":"ExecCredential","apiVersion":"` + v1 + `","spec":{"cluster":5}}`},
	} {
		o, err := s.run(ctx, variation{command: s.command, request: garbage.request})
		if err == nil {
			err = o.failed()
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("request that is %s: %w", garbage.name, err))
		}
	}
	return errors.Join(faults...)
}

// noticesFullDevice can be checked where there is a device that is always full.
func noticesFullDevice(ctx context.Context, s *suite) error {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = full.Close() }()
	text, err := request(v1, s.command.Cluster)
	if err != nil {
		return err
	}
	o, err := s.run(ctx, variation{command: s.command, request: text, stdout: full})
	if err != nil {
		return err
	}
	return o.failed()
}

func refusesUnknownFlag(ctx context.Context, s *suite) error {
	text, err := request(v1, s.command.Cluster)
	if err != nil {
		return err
	}
	o, err := s.run(ctx, variation{command: s.command, request: text, args: []string{"--no-plugin-has-this-flag"}})
	if err != nil {
		return err
	}
	return o.failed()
}

func printsHelp(ctx context.Context, s *suite) error {
	o, err := s.run(ctx, variation{command: s.command, args: []string{"--help"}})
	switch {
	case err != nil:
		return err
	case o.code != 0:
		return fmt.Errorf("%s; on standard error: %s", o.end(), o.complaint())
	case len(o.stdout) == 0:
		return errors.New("there is nothing on standard output")
	}
	return s.shows("the help", o.stdout)
}

// endsAfter is left out where the system has no such signals.
func endsAfter(signal os.Signal) func(context.Context, *suite) error {
	const soon = 5 * time.Second
	return func(ctx context.Context, s *suite) error {
		if runtime.GOOS == "windows" {
			return nil
		}
		text, err := request(v1, s.command.Cluster)
		if err != nil {
			return err
		}
		v := variation{command: s.command, request: text, signal: signal}
		if s.command.Stall != nil {
			v.waiting = s.command.Stall(&v.command)
		}
		o, err := s.run(ctx, v)
		if err != nil {
			return err
		}
		switch {
		case o.lasted > soon:
			return fmt.Errorf("it went on for %s", o.lasted.Round(time.Millisecond))
		case o.code == 0:
			return o.succeeded(v1)
		case len(o.stdout) > 0:
			return errors.New("it left a part of an answer on standard output")
		}
		return o.withoutTrace()
	}
}
