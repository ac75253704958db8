// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/kind/pkg/cluster"
	kindexec "sigs.k8s.io/kind/pkg/exec"
)

const (
	// engineVariable chooses the engine, as for the command kind.
	engineVariable = "KIND_EXPERIMENTAL_PROVIDER"

	// clusterLabel is on each container of kind. Its value is the cluster's name.
	clusterLabel = "io.x-k8s.kind.cluster"

	// maxReason is the length of an engine's message in an error.
	maxReason = 300
)

// errSlow means that a command did not end in time.
var errSlow = errors.New("check whether the container engine responds")

// engine is a container engine.
type engine struct {
	command string // such as "docker"
	timeout time.Duration
	library *cluster.Provider
}

// candidates are the engines in kind's order, and how their versions start. kind's own
// detection does not return which one it has chosen.
var candidates = []struct {
	command, version string
	option           cluster.ProviderOption
}{
	{"docker", "Docker version", cluster.ProviderWithDocker()},
	{"nerdctl", "nerdctl version", cluster.ProviderWithNerdctl("nerdctl")},
	{"finch", "finch version", cluster.ProviderWithNerdctl("finch")},
	{"podman", "podman version", cluster.ProviderWithPodman()},
}

// detect returns the engine that kind would use: the last one if it is still that, as
// kind's library logs a warning for each new one of Podman.
func detect(ctx context.Context, log logr.Logger, timeout time.Duration, last *engine) (*engine, error) {
	use := func(command string, option cluster.ProviderOption) *engine {
		if last != nil && last.command == command {
			return last
		}
		return &engine{
			command: command, timeout: timeout,
			library: cluster.NewProvider(option, cluster.ProviderWithLogger(logger{log})),
		}
	}
	if value := os.Getenv(engineVariable); value != "" {
		if option := chosen(value); option != nil {
			return use(value, option), nil
		}
	}
	for _, c := range candidates {
		text, err := output(ctx, timeout, c.command, "-v")
		if errors.Is(err, errSlow) {
			return nil, err // the next engine may be another one than kind's
		}
		if err == nil && strings.HasPrefix(text, c.version) {
			return use(c.command, c.option), nil
		}
	}
	return nil, errors.New("no container engine found: install Docker, nerdctl or Podman, or set " + engineVariable)
}

// chosen returns the engine of a value of engineVariable, nil if kind ignores the value.
func chosen(value string) cluster.ProviderOption {
	switch value {
	case "docker":
		return cluster.ProviderWithDocker()
	case "podman":
		return cluster.ProviderWithPodman()
	case "nerdctl", "finch", "nerdctl.lima":
		return cluster.ProviderWithNerdctl(value)
	}
	return nil
}

// containers returns a line for each container with the label, which may have a value. It
// differs after a container was recreated, stopped or started, or has another port.
func (e *engine) containers(ctx context.Context, label string) (string, error) {
	text, err := output(ctx, e.timeout, e.command, "ps", "-a", "--no-trunc", "--filter", "label="+label, "--format", "{{.ID}} {{.Ports}}")
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n"), err
}

// clusters returns the names of all clusters. It cannot be interrupted.
func (e *engine) clusters() ([]string, error) {
	names, err := e.library.List()
	return names, explain(err)
}

// kubeconfig returns the kubeconfig of a cluster for clients on this machine. It cannot be
// interrupted.
func (e *engine) kubeconfig(name string) (string, error) {
	content, err := e.library.KubeConfig(name, false)
	return content, explain(err)
}

// output returns the output of a command.
func output(ctx context.Context, timeout time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.WaitDelay = time.Second // for processes that it has started
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	switch {
	case err == nil:
		return stdout.String(), nil
	case ctx.Err() != nil:
		return "", slow(name+" "+args[0], timeout)
	}
	if reason := lastLine(stderr.String(), func(string) bool { return true }); reason != "" {
		return "", fmt.Errorf("%s %s: %s", name, args[0], reason)
	}
	return "", fmt.Errorf("%s %s: %w", name, args[0], err)
}

func slow(what string, timeout time.Duration) error {
	return fmt.Errorf("%s did not end within %v: %w", what, timeout, errSlow)
}

// explain adds what the engine has printed to an error of kind's library. The output of a
// failed command may also have a part of a kubeconfig, so only messages are taken.
func explain(err error) error {
	if err == nil {
		return nil
	}
	failed := kindexec.RunErrorForError(err)
	if failed == nil {
		if strings.Contains(err.Error(), "yaml: ") {
			return errors.New("the kubeconfig in the container is not valid YAML") // the cause quotes it
		}
		return err
	}
	if reason := lastLine(string(failed.Output), isMessage); reason != "" {
		return fmt.Errorf("%s: %s", strings.Join(failed.Command, " "), reason)
	}
	return err
}

// messages are how messages of engines, and of cat, start.
var messages = []string{"Error", "error", "Cannot connect", "OCI runtime", "cat: ", "failed to", "permission denied", "time="}

// isMessage reports whether a line cannot be part of a kubeconfig.
func isMessage(line string) bool {
	return slices.ContainsFunc(messages, func(start string) bool { return strings.HasPrefix(line, start) })
}

// lastLine returns the last line of an output for which the function returns true, or "".
func lastLine(output string, use func(string) bool) string {
	found := ""
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && use(line) {
			found = line
		}
	}
	if strings.HasPrefix(found, "time=") { // a message must be the same the next time
		if _, message, ok := strings.Cut(found, " msg="); ok {
			found = message
		}
	}
	if len(found) > maxReason {
		found = strings.ToValidUTF8(found[:maxReason], "") + "…"
	}
	return found
}
