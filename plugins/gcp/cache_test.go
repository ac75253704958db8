// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp_test

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const anyRequest = `KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
	"spec":{"cluster":{"server":"https://34.1.2.3"},"interactive":false}}`

// runProgram runs the plugin as a process.
func runProgram(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	var out, errs bytes.Buffer
	command := exec.CommandContext(t.Context(), os.Args[0], args...)
	command.Env = append(os.Environ(), programVariable+"=1", "GORACE=atexit_sleep_ms=0", anyRequest)
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		t.Errorf("%s: %s", err, errs.String())
	}
	return out.String()
}

func TestCachedTokenIsRequestedOnce(t *testing.T) {
	const processes, invocations = 40, 1000
	for name, file := range map[string]func(*cloud) map[string]any{
		"metadata server":     nil,
		"service account key": (*cloud).serviceAccountKey,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(t)
			if file != nil {
				c.use(file(c))
			}
			args := []string{"--cache-dir=" + t.TempDir()}
			outputs := make([]string, invocations)
			var group sync.WaitGroup
			for n := range processes {
				group.Go(func() { outputs[n] = runProgram(t, args...) })
			}
			group.Wait()
			for n := processes; n < invocations; n++ {
				_, outputs[n], _ = run(t, noConfig, args...)
			}
			for _, output := range outputs {
				g.Expect(output).To(Equal(outputs[0]))
			}
			g.Expect(c.to("/")).To(HaveLen(1))
		})
	}
}

func TestCacheKey(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(t)
	dir := t.TempDir()
	obtain := func(config string, args ...string) {
		t.Helper()
		before := len(c.to("/"))
		for range 2 {
			code, _, stderr := run(t, config, append(args, "--cache-dir="+dir)...)
			g.Expect(code).To(Equal(plugin.ExitOK), stderr)
		}
		g.Expect(len(c.to("/"))).To(BeNumerically(">", before), "it was not in the cache")
		after := len(c.to("/"))
		_, _, _ = run(t, config, append(args, "--cache-dir="+dir)...)
		g.Expect(c.to("/")).To(HaveLen(after), "it was in the cache")
	}
	obtain(noConfig)
	obtain(noConfig, "--account="+robot)
	obtain(noConfig, "--scopes=email")
	impersonate := []string{"--iam-credentials-url=" + c.URL, "--impersonate-service-account=" + viewer}
	obtain(noConfig, impersonate...)
	obtain(noConfig, append(impersonate, "--quota-project=p9")...)
	obtain(choosing(robot), append(impersonate, "--allowed-service-account="+robot)...)
	obtain(choosing(robot), append(impersonate, "--allowed-service-account="+middle+","+robot)...)

	c.use(c.serviceAccountKey())
	obtain(noConfig)
	other := c.serviceAccountKey()
	other["private_key_id"] = "k2"
	c.use(other)
	obtain(noConfig)

	another := newCloud(t)
	before := len(another.to("/"))
	code, _, _ := run(t, noConfig, "--cache-dir="+dir)
	g.Expect(code).To(Equal(plugin.ExitOK))
	g.Expect(len(another.to("/"))).To(BeNumerically(">", before), "another metadata server")
}
