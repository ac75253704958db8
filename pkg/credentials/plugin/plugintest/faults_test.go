// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	folderVariable = "PLUGINTEST_FOLDER"
	stallVariable  = "PLUGINTEST_STALL"

	token   = "t0ken-of-the-plugin"
	request = "KUBERNETES_EXEC_INFO"
	v1      = "client.authentication.k8s.io/v1"
	v1beta1 = "client.authentication.k8s.io/v1beta1"
)

// good is a correct plugin.
type good struct{}

func (good) Name() string    { return "good" }
func (good) Version() string { return "v1" }
func (good) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	if _, err := plugin.DecodeConfig[struct {
		Name string `json:"name"`
	}](request); err != nil {
		return nil, err
	}
	if address := os.Getenv(stallVariable); address != "" {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return nil, err
		}
		defer func() { _ = conn.Close() }()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &plugin.Credential{Token: token, Expiry: time.Now().Add(time.Hour)}, nil
}

// runPlugin runs the plugin with the fault.
func runPlugin(fault string) {
	if output, found := badOutputs[fault]; found {
		fmt.Print(output)
		return
	}
	run, found := faults[fault]
	if !found {
		fmt.Fprintln(os.Stderr, "no such fault:", fault)
		os.Exit(99)
	}
	run()
}

// runGood runs the correct plugin and returns the result.
func runGood(args, env []string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = plugin.Run(context.Background(), good{}, args, env, &out, &errs)
	return out.String(), errs.String(), code
}

// exit prints the outcome and ends the program.
func exit(stdout, stderr string, code int) {
	fmt.Fprint(os.Stderr, stderr)
	if _, err := fmt.Print(stdout); err != nil {
		code = 1
	}
	os.Exit(code)
}

// failing changes the outcome of every run that fails.
func failing(change func(stderr string) (newStdout, newStderr string, code int)) func() {
	return func() {
		stdout, stderr, code := runGood(os.Args[1:], os.Environ())
		if code != 0 {
			stdout, stderr, code = change(stderr)
		}
		exit(stdout, stderr, code)
	}
}

// before runs the function and then the correct plugin.
func before(do func()) func() {
	return func() {
		do()
		plugin.Main(good{})
	}
}

func credential(status string) string {
	return `{"kind":"ExecCredential","apiVersion":"` + v1 + `","status":` + status + `}`
}

// badOutputs are printed for any request.
var badOutputs = map[string]string{
	"always prints v1beta1":   `{"kind":"ExecCredential","apiVersion":"` + v1beta1 + `","status":{"token":"` + token + `"}}`,
	"always prints v1":        credential(`{"token":"` + token + `"}`),
	"accepts any request":     credential(`{"token":"` + token + `"}`),
	"accepts any flag":        credential(`{"token":"` + token + `"}`),
	"log on stdout":           "obtaining a token\n" + credential(`{"token":"`+token+`"}`),
	"text after the output":   credential(`{"token":"`+token+`"}`) + "\ndone",
	"another kind":            `{"kind":"Token","apiVersion":"` + v1 + `","status":{"token":"` + token + `"}}`,
	"no status":               `{"kind":"ExecCredential","apiVersion":"` + v1 + `"}`,
	"empty output":            credential(`{}`),
	"newline in the token":    credential(`{"token":"` + token + `\n"}`),
	"certificate without key": credential(`{"clientCertificateData":"x"}`),
	"invalid certificate":     credential(`{"clientCertificateData":"x","clientKeyData":"y"}`),
	"expired":                 credential(`{"token":"` + token + `","expirationTimestamp":"2001-01-01T00:00:00Z"}`),
	"expiry in seconds":       credential(`{"token":"` + token + `","expirationTimestamp":"1700000000"}`),
	"endless output":          credential(`{"token":"` + strings.Repeat("a", 2<<20) + `"}`),
}

// faults are programs with one fault each.
var faults = map[string]func(){
	"none": func() { plugin.Main(good{}) },
	"token on stderr": before(func() {
		fmt.Fprintln(os.Stderr, "obtained", token)
	}),
	"short token": func() {
		stdout, stderr, code := runGood(os.Args[1:], os.Environ())
		exit(strings.ReplaceAll(stdout, token, "cred"), stderr, code)
	},
	"own secret on stderr": failing(func(stderr string) (string, string, int) {
		return "", strings.TrimSpace(stderr) + " with own-secret\n", 1
	}),
	"own secret in help": func() {
		stdout, stderr, code := runGood(os.Args[1:], os.Environ())
		exit(strings.ReplaceAll(stdout, "Usage", "own-secret is used. Usage"), stderr, code)
	},
	"leaves a file": before(func() {
		must(os.WriteFile("token.json", nil, 0o600))
	}),
	"leaves a process": before(func() {
		child := exec.Command("sleep", "600")
		child.Stdout = os.Stdout
		must(child.Start())
	}),
	"reads stdin": before(func() {
		_, err := io.ReadAll(os.Stdin)
		must(err)
	}),
	"small buffer": before(func() {
		if len(os.Getenv(request)) > 64<<10 {
			must(errors.New("the request is too long"))
		}
	}),
	"strict about fields": before(func() {
		var known struct {
			Kind       string `json:"kind"`
			APIVersion string `json:"apiVersion"`
			Spec       any    `json:"spec"`
		}
		decoder := json.NewDecoder(strings.NewReader(os.Getenv(request)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&known); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}),
	"one at a time": func() {
		name := filepath.Join(os.Getenv(folderVariable), "lock")
		lock, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600)
		must(err)
		must(lock.Close())
		// Long enough for the others to start.
		time.Sleep(300 * time.Millisecond)
		stdout, stderr, code := runGood(os.Args[1:], os.Environ())
		must(os.Remove(name))
		exit(stdout, stderr, code)
	},
	"trace": failing(func(string) (string, string, int) {
		panic("not understood")
	}),
	"error of two lines": failing(func(stderr string) (string, string, int) {
		return "", stderr + "see the manual\n", 1
	}),
	"silent failure": failing(func(string) (string, string, int) { return "", "", 1 }),
	"error on stdout": failing(func(stderr string) (string, string, int) {
		return stderr, stderr, 1
	}),
	"failure with code 0":   failing(func(stderr string) (string, string, int) { return "", stderr, 0 }),
	"failure with code 255": failing(func(stderr string) (string, string, int) { return "", stderr, 255 }),
	"ignores write errors": func() {
		stdout, stderr, code := runGood(os.Args[1:], os.Environ())
		fmt.Fprint(os.Stderr, stderr)
		fmt.Print(stdout)
		os.Exit(code)
	},
	"no help": func() {
		args := slices.DeleteFunc(os.Args[1:], func(arg string) bool { return arg == "--help" })
		exit(runGood(args, os.Environ()))
	},
	"help on stderr": func() {
		stdout, stderr, code := runGood(os.Args[1:], os.Environ())
		if slices.Contains(os.Args, "--help") {
			stdout, stderr = "", stdout
		}
		exit(stdout, stderr, code)
	},
	"ignores SIGTERM": before(func() { ignore(syscall.SIGTERM) }),
	"ignores SIGINT":  before(func() { ignore(syscall.SIGINT) }),
	"trace at SIGINT": before(func() {
		if os.Getenv(stallVariable) == "" {
			return
		}
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT)
		go runGood(nil, os.Environ())
		<-signals
		fmt.Fprint(os.Stderr, "Traceback (most recent call last):\n  File \"plugin.py\", line 1\nKeyboardInterrupt\n")
		os.Exit(1)
	}),
}

// ignore runs the plugin without a handler of the signal, if it is to wait.
func ignore(s os.Signal) {
	if os.Getenv(stallVariable) == "" {
		return
	}
	signal.Ignore(s)
	exit(runGood(os.Args[1:], os.Environ()))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
	}
}
