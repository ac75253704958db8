// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

func TestFailingPluginHasBackoff(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.set("stderr", "warming up\ncannot reach the vault\x1b[31m\n")
	plugin.set("code", "7")
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())

	for range 20 {
		_, _, err := get(client, server.URL)
		g.Expect(err).To(MatchError(credentials.ErrPluginFailed))
		g.Expect(err).To(MatchError(ContainSubstring(
			`profile fleet/c1: provider "fake": plugin failed: ` + executable(t) + `: exit code 7: warming up | cannot reach the vault`)))
		var failed *credentials.RunError
		g.Expect(errors.As(err, &failed)).To(BeTrue())
		g.Expect(failed.ExitCode).To(Equal(7))
	}
	g.Expect(plugin.runs()).To(HaveLen(1))
	g.Expect(server.identities()).To(BeEmpty())
}

func TestInvalidOutput(t *testing.T) {
	v1 := "client.authentication.k8s.io/v1"
	token := map[string]string{"token": "t1"}
	for _, test := range []struct {
		name, output string
		kind         error
		text         string
	}{
		{"nothing", "", credentials.ErrInvalidOutput, "nothing on standard output"},
		{"no JSON", "token: s3cret", credentials.ErrInvalidOutput, "not JSON, at byte 2"},
		{"another kind", `{"kind":"Pod"}`, credentials.ErrInvalidOutput, "kind is not ExecCredential"},
		{"an old version", execCredential(v1+"alpha1", token), credentials.ErrInvalidOutput, "apiVersion is neither"},
		{"no status", `{"kind":"ExecCredential","apiVersion":"` + v1 + `"}`, credentials.ErrInvalidOutput, "there is no status"},
		{"an empty status", execCredential(v1, nil), credentials.ErrInvalidOutput, "there is no status"},
		{"a token of white space", execCredential(v1, map[string]string{"token": " \n"}), credentials.ErrInvalidOutput, "neither a token nor a client certificate"},
		{"a token with a line break", execCredential(v1, map[string]string{"token": "s3cret\nX-Evil: 1"}), credentials.ErrInvalidOutput, "characters that are not allowed in a header"},
		{"a certificate without a key", execCredential(v1, map[string]string{"clientCertificateData": "s3cret"}), credentials.ErrInvalidOutput, "without clientKeyData"},
		{"an invalid key", execCredential(v1, map[string]string{"clientCertificateData": "s3cret", "clientKeyData": "s3cret"}), credentials.ErrInvalidOutput, "not a certificate and its key"},
		{"a token that has expired", execCredential(v1, map[string]string{"token": "s3cret", "expirationTimestamp": "2001-02-03T04:05:06Z"}), credentials.ErrExpired, "expired at 2001-02-03T04:05:06Z"},
		{"an invalid time", execCredential(v1, map[string]string{"token": "t", "expirationTimestamp": "s3cret"}), credentials.ErrInvalidOutput, "a field has a value that cannot be read"},
		{"fields in another case", `{"kind":"ExecCredential","apiVersion":"` + v1 + `","status":{"Token":"s3cret"}}`, credentials.ErrInvalidOutput, "neither a token nor a client certificate"},
		{"a token that is given twice", `{"kind":"ExecCredential","apiVersion":"` + v1 + `","status":{"token":"t1","token":"s3cret"}}`, credentials.ErrInvalidOutput, "a field is given twice"},
		{"a second answer", execCredential(v1, token) + `{"s3cret":1}`, credentials.ErrInvalidOutput, "not JSON, at byte"},
		{"too much", strings.Repeat(" ", 1<<20) + execCredential(v1, token), credentials.ErrInvalidOutput, "more than 1048576 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t)
			plugin.set("output", test.output)
			client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())
			_, _, err := get(client, server.URL)
			g.Expect(err).To(MatchError(test.kind))
			g.Expect(err).To(MatchError(credentials.ErrInvalidOutput))
			g.Expect(err).To(MatchError(ContainSubstring(test.text)))
			g.Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
		})
	}
}

func TestExecCredentialVersions(t *testing.T) {
	for _, asked := range []string{"v1", "v1beta1"} {
		for _, printed := range []string{"v1", "v1beta1"} {
			t.Run(asked+" prints "+printed, func(t *testing.T) {
				g := NewWithT(t)
				plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
				plugin.set("output", execCredential("client.authentication.k8s.io/"+printed, map[string]string{"token": "t1"}))
				provider := plugin.provider()
				provider.ExecConfig.APIVersion = "client.authentication.k8s.io/" + asked
				resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
				getAll(t, httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig()), server.URL, 1, 200)
				g.Expect(plugin.runs()[0].ExecInfo).To(MatchJSON(
					`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/` + asked + `","spec":{"interactive":false}}`))
			})
		}
	}
}

func TestHangingPluginIsKilledWithChildren(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t)
	waitForChild := plugin.leaveChild()
	plugin.shut()
	resolver := newResolver(t, credentials.Options{
		Providers: []providerfile.Provider{plugin.provider()},
		Timeout:   time.Second,
	})
	client := httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig())
	_, _, err := get(client, server.URL)
	g.Expect(err).To(MatchError(credentials.ErrTimeout))
	g.Expect(err).To(MatchError(ContainSubstring("plugin timed out after 1s")))
	waitForChild()
}

func TestChildLeftBehind(t *testing.T) {
	for _, test := range []struct{ name, file string }{
		{"with the plugin's output open", "loud"},
		{"with no output", "quiet"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.output("t1", future())
			plugin.set(test.file, "")
			waitForChild := plugin.leaveChild()
			client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())
			status, body, err := get(client, server.URL)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(200), body)
			waitForChild()
		})
	}
}

func TestLastCanceledRequestStopsTheRun(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	plugin.shut()
	waitForChild := plugin.leaveChild()
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())

	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	g.Expect(err).NotTo(HaveOccurred())
	left := make(chan error)
	go func() {
		response, err := client.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		left <- err
	}()
	g.Eventually(func() int { return len(plugin.runs()) }).Should(Equal(1))
	go leave()
	waitForChild()
	g.Expect(<-left).To(MatchError(context.Canceled))
}

func TestCanceledRequestKeepsTheRun(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	plugin.shut()
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())

	var patient sync.WaitGroup
	patient.Go(func() { getAll(t, client, server.URL, 1, 200) })
	g.Eventually(func() int { return len(plugin.runs()) }).Should(Equal(1))

	ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	g.Expect(err).To(MatchError(context.DeadlineExceeded))

	plugin.open()
	patient.Wait()
	g.Expect(plugin.runs()).To(HaveLen(1))
}

func TestMaxConcurrentRuns(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	plugin.shut()
	resolver := newResolver(t, credentials.Options{Providers: distinct(plugin, "fake"), MaxConcurrentRuns: 3})
	var requests sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		client := httpClient(t, resolve(t, resolver, server.profile("c1", extension(configExtension, named(name)))).RESTConfig())
		requests.Go(func() { getAll(t, client, server.URL, 1, 200) })
	}
	running := func() int { return len(plugin.runs()) }
	g.Eventually(running).Should(Equal(2), "the third slot is for renewals")
	g.Consistently(running, "100ms").Should(Equal(2))
	plugin.open() // for those that wait, and the third one has no gate
	requests.Wait()
	g.Expect(running()).To(Equal(3))
}

// distinct returns providers whose plugin runs once for each profile's config.
func distinct(plugin *fakePlugin, names ...string) []providerfile.Provider {
	var providers []providerfile.Provider
	for _, name := range names {
		provider := plugin.provider()
		provider.Name, provider.ExecConfig.ProvideClusterInfo = name, true
		providers = append(providers, provider)
	}
	return providers
}

func TestWaitForSlotIsNoFailure(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	plugin.shut()
	resolver := newResolver(t, credentials.Options{Providers: distinct(plugin, "fake"), MaxConcurrentRuns: 1})
	clientOf := func(name string) *http.Client {
		return httpClient(t, resolve(t, resolver, server.profile(name, extension(configExtension, named(name)))).RESTConfig())
	}
	var patient sync.WaitGroup
	patient.Go(func() { getAll(t, clientOf("slow"), server.URL, 1, 200) })
	g.Eventually(func() int { return len(plugin.runs()) }).Should(Equal(1))

	// Its request waits for longer than it takes to blame a plugin that runs.
	client := clientOf("quick")
	ctx, leave := context.WithTimeout(t.Context(), 1100*time.Millisecond)
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	plugin.open()
	patient.Wait()
	getAll(t, client, server.URL, 1, 200)
}

func TestErrorsAndLogsHaveNoSecret(t *testing.T) {
	g := NewWithT(t)
	var log syncBuffer
	plugin, server := newFakePlugin(t), newServer(t)
	plugin.output("s3cret-t0ken", future())
	plugin.set("stderr", "got s3cret-t0ken\nAuthorization: Bearer an0ther\n{\"password\": \"th1rd\"} eyJhbGciOi.eyJzdWIi.c2ln\n")
	plugin.set("code", "1")
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{plugin.provider()}, Logger: log.logger()})
	access := resolve(t, resolver, server.profile("c1"))
	config := access.RESTConfig()
	_, _, err := get(httpClient(t, config), server.URL)
	g.Expect(err).To(MatchError(credentials.ErrPluginFailed))
	for _, text := range []string{err.Error(), log.String(), config.String()} {
		for _, secret := range []string{"s3cret", "an0ther", "th1rd", "eyJ"} {
			g.Expect(text).NotTo(ContainSubstring(secret))
		}
	}
	g.Expect(log.String()).To(ContainSubstring("got [redacted]"), "the rest is there")
}

func TestTimeoutErrorHasNoSecret(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t)
	plugin.output("s3cret-t0ken", future())
	plugin.set("stderr", "got s3cret-t0ken\n")
	plugin.pipe("hang")
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{plugin.provider()}, Timeout: time.Second})
	_, _, err := get(httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig()), server.URL)
	g.Expect(err).To(MatchError(credentials.ErrTimeout))
	g.Expect(err).To(MatchError(ContainSubstring("got [redacted]")))
	g.Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *syncBuffer) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.text.WriteString(prefix + " " + args + "\n")
	}, funcr.Options{Verbosity: 10})
}
