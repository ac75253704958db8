// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const goodFile = `{"providers":[{"name":"secretreader",
  "execConfig":{"apiVersion":"client.authentication.k8s.io/v1","command":"/plugins/x","args":null,
                "env":[{"name":"A","value":"b"}],"provideClusterInfo":true},
  "profileSourcedCLIArgsPolicy":"Append",
  "profileSourcedEnvVarsPolicy":"AppendIfNotExists"}]}`

func TestParseFile(t *testing.T) {
	g := NewWithT(t)
	fromJSON, err := credentials.ParseFile("x.json", []byte(goodFile))
	g.Expect(err).NotTo(HaveOccurred())
	fromYAML, err := credentials.ParseFile("x.yaml", []byte(`
providers:
- name: secretreader
  execConfig:
    apiVersion: client.authentication.k8s.io/v1
    command: /plugins/x
    env:
    - {name: A, value: b}
    provideClusterInfo: true
  profileSourcedCLIArgsPolicy: Append
  profileSourcedEnvVarsPolicy: AppendIfNotExists
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fromYAML).To(Equal(fromJSON))
	g.Expect(fromJSON.Providers).To(HaveLen(1))
	g.Expect(fromJSON.Providers[0].ExecConfig.Command).To(Equal("/plugins/x"))
	g.Expect(fromJSON.Providers[0].ExecConfig.ProvideClusterInfo).To(BeTrue())
	g.Expect(fromJSON.Providers[0].ProfileSourcedCLIArgsPolicy).To(Equal(credentials.ProfileSourcedCLIArgsAppend))
}

func TestFaultyFilesSayWhereTheFaultIs(t *testing.T) {
	replaced := func(part, by string) string { return strings.Replace(goodFile, part, by, 1) }
	twice := strings.Replace(goodFile, `"}]}`, `"},`+strings.TrimPrefix(goodFile, `{"providers":[`), 1)
	for _, test := range []struct {
		name, content, text string
	}{
		{"nothing", ``, "provider file x: providers: must be given"},
		{"an object without providers", `{}`, "provider file x: providers: must be given"},
		{"neither JSON nor YAML", "\t{", "provider file x: "},
		{"a misspelled field of the file", `{"provider":[]}`, `unknown field "provider", did you mean "providers"?`},
		{"a misspelled field of an entry", replaced(`"execConfig"`, `"exeConfig"`), `providers[0] ("secretreader"): unknown field "exeConfig", did you mean "execConfig"?`},
		{"a misspelled field of execConfig", replaced(`"command"`, `"comand"`), `providers[0] ("secretreader"): unknown field "execConfig.comand", did you mean "command"?`},
		{"a field in another case", replaced(`"command"`, `"Command"`), `unknown field "execConfig.Command", did you mean "command"?`},
		{"a field that resembles none", replaced(`"args":null`, `"x":null,"resource":1`), `unknown field "execConfig.resource"` + "\n"},
		{"a field given twice", replaced(`"args":null`, `"args":null,"args":[]`), `"args" already set`},
		{"a string for a list", replaced(`"args":null`, `"args":"--x"`), `providers[0] ("secretreader"): execConfig.args: must be a list of strings, not a string`},
		{"a number in a list of strings", replaced(`"args":null`, `"args":["a",5]`), `providers[0] ("secretreader"): execConfig.args[1]: must be a string, not a number`},
		{"a mapping for variables", replaced(`[{"name":"A","value":"b"}]`, `{"A":"b"}`), `providers[0] ("secretreader"): execConfig.env: must be a list of {name, value}, not a mapping`},
		{"a variable that is true", replaced(`"b"`, `true`), `providers[0] ("secretreader"): execConfig.env[0].value: must be a string, not true`},
		{"a string for true", replaced(`true`, `"yes"`), `providers[0] ("secretreader"): execConfig.provideClusterInfo: must be true or false, not a string`},
		{"a list for a mapping", `{"providers":[{"name":"a","execConfig":[]}]}`, `providers[0] ("a"): execConfig: must be a mapping, not a list`},
		{"a name that is a number", `{"providers":[{"name":5}]}`, `providers[0] (""): name: must be a string, not a number`},
		{"an entry that is a string", `{"providers":["a"]}`, `providers[0] (""): must be a mapping, not a string`},
		{"one entry in the place of the list", `{"providers":{"name":"a"}}`, `provider file x: providers: must be a list, not a mapping`},
		{"a list in the place of the file", `[{"name":"a"}]`, `provider file x: must be a mapping with the key "providers", not a list`},
		{"a word in the place of the file", `providers`, `provider file x: must be a mapping with the key "providers", not a string`},
		{"an entry in the place of the file", `{"name":"a","execConfig":{}}`, `provider file x: an entry belongs under "providers"`},
		{"two documents", "providers: []\n---\nproviders: []\n", "provider file x: more than one YAML document"},
		{"two documents, the second one broken", "providers: []\n---\n\t{", "provider file x: more than one YAML document"},
		{"two objects", `{"providers":[]} {"providers":[]}`, "provider file x: more than one YAML document"},
		{"a name given twice", twice, `provider file x: providers[1] ("secretreader"): name: already taken by an earlier entry`},
		{"an empty name", replaced(`"secretreader"`, `""`), `provider file x: providers[0] (""): name: must not be empty`},
		{"no execConfig", `{"providers":[{"name":"a"}]}`, `providers[0] ("a"): execConfig: must be given`},
		{"no command", replaced(`/plugins/x`, ``), `providers[0] ("secretreader"): execConfig.command: must not be empty`},
		{"a command relative to the working directory", replaced(`/plugins/x`, `./x`), `execConfig.command: "./x" is neither an absolute path nor a name without a slash`},
		{"a command that goes up", replaced(`/plugins/x`, `..`), `execConfig.command: ".." is not the name of a program`},
		{"no apiVersion", replaced(`"client.authentication.k8s.io/v1"`, `""`), `execConfig.apiVersion: "" is neither`},
		{"an apiVersion of the past", replaced(`.io/v1"`, `.io/v1alpha1"`), `execConfig.apiVersion: "client.authentication.k8s.io/v1alpha1" is neither`},
		{"a misspelled policy for arguments", replaced(`"Append"`, `"append"`), `profileSourcedCLIArgsPolicy: "append" is neither Append nor Ignore`},
		{"a misspelled policy for variables", replaced(`"AppendIfNotExists"`, `"Append"`), `profileSourcedEnvVarsPolicy: "Append" is none of`},
		{"a variable without a name", replaced(`"A"`, `""`), `execConfig.env[0].name: "" is not the name of a variable`},
		{"the request as a variable", replaced(`"A"`, `"KUBERNETES_EXEC_INFO"`), `execConfig.env[0].name: KUBERNETES_EXEC_INFO is set by the caller`},
		{"a plugin that needs a terminal", replaced(`"args":null`, `"interactiveMode":"Always"`), `execConfig.interactiveMode: "Always" is not possible`},
		{"an allowed variable that is none", replaced(`"name":"secretreader"`, `"name":"a","allowedProfileEnvVars":["A=b"]`), `allowedProfileEnvVars[0]: "A=b" is not the name of a variable`},
		{"an inherited variable that is none", replaced(`"name":"secretreader"`, `"name":"a","inheritedEnvVars":["A",""]`), `inheritedEnvVars[1]: "" is not the name of a variable`},
		{"variables for a plugin in this process", replaced(`"name":"secretreader"`, `"name":"a","inProcess":"p"`), `execConfig.env: a plugin in this process has no environment`},
		{"variables of profiles for a plugin in this process", `{"providers":[{"name":"a","inProcess":"p","profileSourcedEnvVarsPolicy":"Replace"}]}`, `profileSourcedEnvVarsPolicy: a plugin in this process has no environment`},
		{"inheritance for a plugin in this process", `{"providers":[{"name":"a","inProcess":"p","inheritedEnvVars":[]}]}`, `inheritedEnvVars: a plugin in this process has no environment`},
		{"an allowed server that is a URL", replaced(`"name":"secretreader"`, `"name":"a","allowedServers":["https://x"]`), `allowedServers[0]: "https://x" is not a host`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := credentials.ParseFile("x", []byte(test.content))
			g.Expect(err).To(MatchError(ContainSubstring(test.text)))
			g.Expect(err.Error()).To(HavePrefix("provider file x: "))
		})
	}
}

func TestAnEmptyDocumentIsNoSecondOne(t *testing.T) {
	g := NewWithT(t)
	for _, content := range []string{"---\nproviders: []\n---\n", "# first\n---\nproviders: []\n...\n", "providers: []\n---\n# last\n"} {
		_, err := credentials.ParseFile("x", []byte(content))
		g.Expect(err).NotTo(HaveOccurred(), content)
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(goodFile))
	f.Add([]byte("providers:\n- name: a\n  execConfig: {command: x}"))
	f.Add([]byte("providers: [{}, null, 7]"))
	f.Add([]byte("providers: []\n---\n- {providers: x}"))
	f.Add([]byte("providers:\n- name: a\n  inProcess: granting\n- name: b\n  inheritedEnvVars: []"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := credentials.ParseFile("x", data)
		if (file == nil) == (err == nil) {
			t.Fatal("neither or both of a file and an error")
		}
		if err != nil {
			return
		}
		// What is accepted can be used.
		resolver, err := credentials.New(credentials.Options{
			Providers:  file.Providers,
			PluginDirs: []string{"/plugins"},
			Plugins:    []func() plugin.Plugin{newGranting},
		})
		if err != nil {
			return // a plugin that this program does not have
		}
		defer resolver.Close()
		for _, provider := range file.Providers {
			profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})
			profile.Status.AccessProviders[0].Name = provider.Name
			if access, err := resolver.Resolve(t.Context(), profile); err == nil {
				if exec := access.PortableRESTConfig().ExecProvider; exec != nil && !filepath.IsAbs(exec.Command) {
					t.Errorf("command %q would be looked for in PATH", exec.Command)
				}
			}
		}
	})
}

func TestNewNamesTheFault(t *testing.T) {
	relative := plain("a")
	relative.ExecConfig.Command = "x"
	unnamed := plain("")
	for _, test := range []struct {
		name    string
		options credentials.Options
		text    string
	}{
		{"a provider from Go", credentials.Options{Providers: []credentials.Provider{unnamed}}, `credentials: Options: providers[0] (""): name: must not be empty`},
		{"a name without folders to look in", credentials.Options{Providers: []credentials.Provider{relative}}, `execConfig.command: "x" is not an absolute path and there are no plugin folders`},
		{"a file that is not there", credentials.Options{ProviderFile: "/does/not/exist"}, "credentials: provider file: open /does/not/exist"},
		{"an empty folder", credentials.Options{PluginDirs: []string{""}}, "credentials: PluginDirs[0]: must not be empty"},
		{"a plugin that this program does not have", credentials.Options{Providers: []credentials.Provider{{Name: "a", InProcess: "p"}}}, `Options: providers[0] ("a"): inProcess: "p" is not a plugin of this program, which has none`},
		{"a plugin that is none", credentials.Options{Plugins: []func() plugin.Plugin{nil}}, "Plugins[0]: must not be nil"},
		{"a plugin given twice", credentials.Options{Plugins: []func() plugin.Plugin{newGranting, newGranting}}, `Plugins[1]: the name "granting" is already taken`},
		{"an allowed command that is none", credentials.Options{AllowedCommands: []credentials.AllowedCommand{{}}}, "AllowedCommands[0]: the command must not be empty"},
		{"a digest that is none", credentials.Options{AllowedCommands: []credentials.AllowedCommand{{Command: "x", SHA256: []string{"abc"}}}}, `AllowedCommands[0]: "abc" is not a SHA-256 digest`},
		{"a negative number", credentials.Options{MaxConcurrentRuns: -1}, "MaxConcurrentRuns"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			test.options.Logger = testr.New(t)
			_, err := credentials.New(test.options)
			g.Expect(err).To(MatchError(ContainSubstring(test.text)))
		})
	}
}

func TestProviderFileIsReadAgain(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	path := filepath.Join(t.TempDir(), "providers.yaml")
	write := func(content string) { g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed()) }
	entry := func(name string) string {
		return "- name: " + name + "\n  execConfig: {apiVersion: client.authentication.k8s.io/v1, command: /x}\n"
	}
	write("providers:\n" + entry("fake"))
	resolver := newResolver(t, credentials.Options{
		ProviderFile: path,
		Logger:       funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
	})
	profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})
	resolves := func() error {
		_, err := resolver.Resolve(t.Context(), profile)
		return err
	}
	g.Expect(resolves()).To(Succeed())
	g.Expect(lines).To(BeEmpty())

	write("providers:\n" + entry("other"))
	g.Expect(resolves()).To(MatchError(credentials.ErrNoProvider), "a change holds from the next Resolve on")
	write("providers:\n" + entry("fake"))
	g.Expect(resolves()).To(Succeed())
	g.Expect(lines).To(HaveLen(2))

	for _, broken := range []string{"", "providers:\n- nam: fake\n", "providers:\n" + entry("./fake") + entry("./fake")} {
		lines = nil
		write(broken)
		for range 3 {
			g.Expect(resolves()).To(Succeed(), "the last good content stays in force")
		}
		g.Expect(lines).To(HaveLen(1), "and that is said once")
		g.Expect(lines[0]).To(ContainSubstring("cannot be used"))
	}
	lines = nil
	g.Expect(os.Remove(path)).To(Succeed())
	for range 3 {
		g.Expect(resolves()).To(Succeed())
	}
	g.Expect(lines).To(HaveLen(1))

	write("providers:\n" + entry("other"))
	g.Expect(resolves()).To(MatchError(credentials.ErrNoProvider))
}

func TestProvidersFromGoComeFirst(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "providers.json")
	g.Expect(os.WriteFile(path, []byte(goodFile), 0o600)).To(Succeed())
	resolver := newResolver(t, credentials.Options{ProviderFile: path, Providers: []credentials.Provider{plain("secretreader")}})
	profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})
	profile.Status.AccessProviders[0].Name = "secretreader"
	access := resolve(t, resolver, profile)
	g.Expect(access.PortableRESTConfig().ExecProvider.Command).To(Equal("/plugins/plain"))
}

func TestFlags(t *testing.T) {
	g := NewWithT(t)
	options := credentials.Options{PluginDirs: []string{"/default"}}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	options.AddFlags(flags)
	g.Expect(flags.Lookup("credential-plugin-dir").DefValue).To(Equal("[/default]"))
	g.Expect(flags.Parse([]string{
		"--clusterprofile-provider-file=/p.yaml", "--credential-plugin-dir=/a", "--credential-plugin-dir", "/b",
		"--credential-plugin-allow=x", "--credential-plugin-allow=/y@sha256:" + strings.Repeat("0a", 32),
	})).To(Succeed())
	g.Expect(options.AllowedCommands).To(Equal([]credentials.AllowedCommand{
		{Command: "x"}, {Command: "/y", SHA256: []string{strings.Repeat("0a", 32)}},
	}))
	g.Expect(flags.Lookup("credential-plugin-allow").Value.String()).To(Equal("[x /y@sha256:" + strings.Repeat("0a", 32) + "]"))
	for _, wrong := range []string{"", "./x", "x@sha256:", "x@sha256:0a", "@sha256:" + strings.Repeat("0a", 32)} {
		g.Expect(flags.Lookup("credential-plugin-allow").Value.Set(wrong)).NotTo(Succeed(), wrong)
	}
	g.Expect(options.ProviderFile).To(Equal("/p.yaml"))
	g.Expect(options.PluginDirs).To(Equal([]string{"/a", "/b"}))
	g.Expect(flags.Lookup("credential-plugin-dir").Value.Set("")).NotTo(Succeed())
}
