// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// secret is in each kubeconfig of a test, and must be in no error.
const secret = "s3cr3t-Value"

// with returns a kubeconfig with the context "a" of cluster "c" and user "u".
func with(cluster, user string) string {
	return fmt.Sprintf("current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {%s}}]\nusers: [{name: u, user: {%s}}]\n", cluster, user)
}

const server = `server: "https://example.com"`

func errorOf(options kubeconfig.Options, text, context string) error {
	resolver, err := kubeconfig.New(options)
	if err != nil {
		return err
	}
	defer resolver.Close()
	parsed, err := kubeconfig.Parse("Secret ns/eu", "", []byte(text))
	if err != nil {
		return err
	}
	c, err := parsed.Context(context)
	if err != nil {
		return err
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v %s", c, parsed, c, parsed), secret) {
		return errors.New("printing shows the secret")
	}
	access, err := resolver.Access(inventory.Key{Namespace: "ns", Name: "eu"}, c, nil)
	if err == nil {
		access.Release()
	}
	return err
}

func TestErrors(t *testing.T) {
	invalid, refused := kubeconfig.ErrInvalid, kubeconfig.ErrNotAllowed
	exec := kubeconfig.Options{Exec: credentials.Options{AllowedCommands: []credentials.AllowedCommand{{Command: "/bin/allowed"}}}}
	paths := kubeconfig.Options{AllowPaths: true}
	const user, cluster = `Secret ns/eu: context "a": user "u": `, `Secret ns/eu: context "a": cluster "c": `
	for _, test := range []struct {
		name    string
		options kubeconfig.Options
		text    string
		context string
		is      error
		want    string
	}{
		{"empty", kubeconfig.Options{}, " \n", "", invalid, "Secret ns/eu: is empty"},
		{"no YAML", kubeconfig.Options{}, "a: b\nc: [" + secret, "", invalid, "Secret ns/eu: is not valid YAML: see line 2"},
		{"text", kubeconfig.Options{}, secret, "", invalid, "Secret ns/eu: is not an object"},
		{"another kind", kubeconfig.Options{}, "kind: " + secret, "", invalid, `Secret ns/eu: kind: must be "Config"`},
		{"another version", kubeconfig.Options{}, "apiVersion: v2", "", invalid, `Secret ns/eu: apiVersion: must be "v1"`},
		{"users are a map", kubeconfig.Options{}, "users: {a: " + secret + "}", "", invalid, "Secret ns/eu: users: has the wrong type"},
		{"no current context", kubeconfig.Options{}, "kind: Config", "", invalid, "Secret ns/eu: current-context: must be set"},
		{"a missing context", kubeconfig.Options{}, with(server, ""), "b", invalid, `Secret ns/eu: context "b": is not defined`},
		{"a missing cluster", kubeconfig.Options{}, "contexts: [{name: a, context: {cluster: x}}]", "a", invalid, `Secret ns/eu: context "a": cluster "x": is not defined`},
		{"no cluster", kubeconfig.Options{}, "contexts: [{name: a, context: {}}]", "a", invalid, `Secret ns/eu: context "a": cluster: must be set`},
		{"a missing user", kubeconfig.Options{}, "contexts: [{name: a, context: {cluster: c, user: x}}]\nclusters: [{name: c}]", "a", invalid, `Secret ns/eu: context "a": user "x": is not defined`},
		{"a user of the wrong type", kubeconfig.Options{}, with(server, "token: ["+secret+"]"), "a", invalid, user + "token: has the wrong type"},
		{"invalid base64", kubeconfig.Options{}, with(server, `client-key-data: "`+secret+`!"`), "a", invalid, user + "client-key-data: is not valid base64"},
		{"a user that is given twice", kubeconfig.Options{}, with(server, "token: "+secret+"}}, {name: u, user: {token: "+secret), "a", invalid, user + "is given more than once"},
		{"no server", kubeconfig.Options{}, with("", ""), "a", invalid, cluster + "server: must be set"},
		{"a server that is not a URL", kubeconfig.Options{}, with(`server: "https://`+secret+`:x"`, ""), "a", invalid, cluster + "server: is not a URL like https://host:port"},
		{"a server with a password", kubeconfig.Options{}, with(`server: "https://u:`+secret+`@x"`, ""), "a", invalid, cluster + "server: must not contain user information: set username and password of the user"},
		{"a proxy that is not a URL", kubeconfig.Options{}, with(server+`, proxy-url: "ftp://u:`+secret+`@x"`, ""), "a", invalid, cluster + "proxy-url: is not an http, https or socks5 URL with a host"},
		{"an invalid CA", kubeconfig.Options{}, with(server+", certificate-authority-data: aGVsbG8=", ""), "a", invalid, cluster + "certificate-authority: has no certificate in PEM format"},
		{"insecure", kubeconfig.Options{}, with(server+", insecure-skip-tls-verify: true", ""), "a", refused, cluster + "insecure-skip-tls-verify: is not allowed: set certificate-authority-data instead"},
		{"insecure with a CA", kubeconfig.Options{AllowInsecureSkipTLSVerify: true}, with(server+", insecure-skip-tls-verify: true, certificate-authority-data: aGVsbG8=", ""), "a", invalid, cluster + "insecure-skip-tls-verify: excludes a certificate authority: remove one of them"},
		{"a file with a CA", kubeconfig.Options{}, with(server+", certificate-authority: /etc/passwd", ""), "a", refused, cluster + "certificate-authority: a path is not allowed: use inline data"},
		{"a file with a certificate", kubeconfig.Options{}, with(server, "client-certificate: /a"), "a", refused, user + "client-certificate: a path is not allowed: use inline data"},
		{"a file with a key", kubeconfig.Options{}, with(server, "client-key: /a"), "a", refused, user + "client-key: a path is not allowed: use inline data"},
		{"a file with a token", kubeconfig.Options{}, with(server, "tokenFile: /a"), "a", refused, user + "tokenFile: a path is not allowed: use inline data"},
		{"a relative path", paths, with(server, "tokenFile: a"), "a", refused, user + "tokenFile: the path must be absolute"},
		{"a path that does not exist", paths, with(server, "tokenFile: /does/not/exist"), "a", invalid, user + "tokenFile: stat /does/not/exist: no such file or directory"},
		{"a path of a device", paths, with(server, "tokenFile: /dev/zero"), "a", invalid, user + "tokenFile: /dev/zero is not a file"},
		{"exec", kubeconfig.Options{}, with(server, "exec: {command: x, apiVersion: v, args: ["+secret+"]}"), "a", refused, user + "exec: running a command is not allowed: use a token or a client certificate"},
		{"exec of another command", exec, with(server, "exec: {command: /bin/other, args: ["+secret+"]}"), "a", refused, user + `exec.command: "/bin/other" is not among the allowed commands`},
		{"exec of the name only", exec, with(server, "exec: {command: allowed}"), "a", refused, user + `exec.command: "allowed" is not among the allowed commands`},
		{"exec of a path that leads elsewhere", exec, with(server, "exec: {command: /bin/../bin/allowed}"), "a", refused, user + `exec.command: "/bin/../bin/allowed" is not among the allowed commands`},
		{"exec with LD_PRELOAD", exec, with(server, "exec: {command: /bin/allowed, env: [{name: LD_PRELOAD, value: "+secret+"}]}"), "a", refused, user + `exec.env: the variable "LD_PRELOAD" is not allowed`},
		{"exec of no command", exec, with(server, "exec: {}"), "a", invalid, user + "exec.command: must be set"},
		{"auth-provider", kubeconfig.Options{}, with(server, "auth-provider: {name: oidc, config: {a: "+secret+"}}"), "a", refused, user + "auth-provider: is not allowed: use a token or a client certificate"},
		{"two methods", kubeconfig.Options{}, with(server, "token: "+secret+", username: u, password: "+secret), "a", invalid, user + "token: cannot be combined with username: keep one of them"},
		{"exec and a token", exec, with(server, "token: "+secret+", exec: {command: /bin/allowed}"), "a", invalid, user + "token: cannot be combined with exec: keep one of them"},
		{"a token of two lines", kubeconfig.Options{}, with(server, `token: "`+secret+`\n`+secret+`"`), "a", invalid, user + "token: contains characters that a token cannot have"},
		{"a certificate without a key", kubeconfig.Options{}, with(server, "client-certificate-data: aGVsbG8="), "a", invalid, user + "client-key: must be set with client-certificate"},
		{"a certificate that is none", kubeconfig.Options{}, with(server, "client-certificate-data: "+encoded(secret)+", client-key-data: "+encoded(secret)), "a", invalid, user + "client-certificate: does not belong to client-key, or one of them is not in PEM format"},
		{"a group without a user", kubeconfig.Options{}, with(server, "as-groups: [g]"), "a", invalid, user + "as: must be set with as-uid, as-groups and as-user-extra"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			err := errorOf(test.options, test.text, test.context)
			g.Expect(err).To(MatchError(test.want))
			g.Expect(errors.Is(err, test.is)).To(BeTrue())
			g.Expect(errors.Is(err, credentials.ErrDenied)).To(BeFalse(), "the fleet would end the connection in use")
			_, typed := errors.AsType[*kubeconfig.Error](err)
			g.Expect(typed).To(BeTrue())
			g.Expect(err.Error()).NotTo(ContainSubstring(secret))
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"))
		})
	}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestOtherContextsAreNotAffected(t *testing.T) {
	g := NewWithT(t)
	text := `
contexts:
- {name: good, context: {cluster: good, user: good}}
- {name: anonymous, context: {cluster: good}}
- {name: bad-user, context: {cluster: good, user: bad}}
- {name: bad-cluster, context: {cluster: bad, user: good}}
- {name: exec, context: {cluster: good, user: exec}}
- {name: wrong, context: 7}
clusters: [{name: good, cluster: {server: "https://a"}}, {name: bad, cluster: {server: [x]}}]
users: [{name: good, user: {token: t}}, {name: bad, user: {token: [t]}}, {name: exec, user: {exec: {command: x}}}]
`
	parsed, err := kubeconfig.Parse("x", "", []byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed.Contexts()).To(Equal([]string{"anonymous", "bad-cluster", "bad-user", "exec", "good", "wrong"}))
	for _, context := range []string{"good", "anonymous"} {
		g.Expect(errorOf(kubeconfig.Options{}, text, context)).To(Succeed())
	}
	for _, context := range []string{"bad-user", "bad-cluster", "exec", "wrong"} {
		g.Expect(errorOf(kubeconfig.Options{}, text, context)).To(MatchError(ContainSubstring(fmt.Sprintf("context %q", context))))
	}
}

func TestOptionsOfExec(t *testing.T) {
	for _, options := range []credentials.Options{{ProviderFile: "x"}, {PluginDirs: []string{""}}} {
		_, err := kubeconfig.New(kubeconfig.Options{Exec: options})
		NewWithT(t).Expect(err).To(MatchError(HavePrefix("kubeconfig: Exec")))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(with(server, "token: t"))
	f.Add("contexts: [{name: a, context: {cluster: c, user: u}}]")
	f.Add("users: [{name: u, user: {exec: {command: x, env: [{name: a}]}}}]")
	resolver, err := kubeconfig.New(kubeconfig.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := kubeconfig.Parse("x", "", []byte(text))
		if err != nil {
			return
		}
		for _, name := range parsed.Contexts() {
			c, err := parsed.Context(name)
			if err != nil {
				continue
			}
			access, err := resolver.Access(inventory.Key{}, c, func(string) ([]byte, error) {
				t.Error("a file was read")
				return nil, errors.New("no")
			})
			if err != nil {
				continue
			}
			cluster, err := resolver.Cluster(c, nil)
			if err != nil {
				t.Errorf("Access has no error, but Cluster: %v", err)
			}
			if cluster.Server != access.Server() {
				t.Errorf("server %q of the profile, %q of the access", cluster.Server, access.Server())
			}
			access.Release()
		}
	})
}
