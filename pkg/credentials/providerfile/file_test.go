// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package providerfile_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

const goodFile = `{"providers":[{"name":"secretreader",
  "execConfig":{"apiVersion":"client.authentication.k8s.io/v1","command":"/plugins/x","args":null,
                "env":[{"name":"A","value":"b"}],"provideClusterInfo":true},
  "profileSourcedCLIArgsPolicy":"Append",
  "profileSourcedEnvVarsPolicy":"AppendIfNotExists",
  "rollcall":{"allowedServers":["*.example.com"],"allowPlainHTTP":true}}]}`

func TestParse(t *testing.T) {
	g := NewWithT(t)
	fromJSON, err := providerfile.Parse("x.json", []byte(goodFile))
	g.Expect(err).NotTo(HaveOccurred())
	fromYAML, err := providerfile.Parse("x.yaml", []byte(`
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
  rollcall:
    allowedServers: ["*.example.com"]
    allowPlainHTTP: true
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fromYAML).To(Equal(fromJSON))
	g.Expect(fromJSON.Providers).To(HaveLen(1))
	provider := fromJSON.Providers[0]
	g.Expect(provider.ExecConfig.Command).To(Equal("/plugins/x"))
	g.Expect(provider.ExecConfig.ProvideClusterInfo).To(BeTrue())
	g.Expect(provider.ProfileSourcedCLIArgsPolicy).To(Equal(providerfile.ProfileSourcedCLIArgsAppend))
	g.Expect(provider.Rollcall).To(Equal(providerfile.Extensions{AllowedServers: []string{"*.example.com"}, AllowPlainHTTP: true}))
}

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	file, err := providerfile.Parse("x", []byte("providers: [{name: a, rollcall: {inProcess: p}}]"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Providers[0].ExecConfig.APIVersion).To(Equal("client.authentication.k8s.io/v1"))
	g.Expect(file.Providers[0].ExecConfig.ProvideClusterInfo).To(BeTrue())
}

// TestOtherReaders covers programs that know the fields of KEP-5339 only.
func TestOtherReaders(t *testing.T) {
	g := NewWithT(t)
	file, err := providerfile.Parse("x", []byte(goodFile))
	g.Expect(err).NotTo(HaveOccurred())
	var fields map[string]any
	ours, err := json.Marshal(file.Providers[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal(ours, &fields)).To(Succeed())
	g.Expect(fields).To(And(HaveLen(5), HaveKey("rollcall")))

	file.Providers[0].Rollcall = providerfile.Extensions{}
	theirs, err := json.Marshal(file.Providers[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(theirs)).NotTo(ContainSubstring("rollcall"))
}

func TestParseErrors(t *testing.T) {
	replaced := func(part, by string) string { return strings.Replace(goodFile, part, by, 1) }
	duplicate := strings.Replace(goodFile, `}}]}`, `}},`+strings.TrimPrefix(goodFile, `{"providers":[`), 1)
	for _, test := range []struct {
		name, content, text string
	}{
		{"nothing", ``, "provider file x: providers: is required"},
		{"an object without providers", `{}`, "provider file x: providers: is required"},
		{"neither JSON nor YAML", "\t{", "provider file x: "},
		{"an unknown field of the file", `{"provider":[]}`, `provider file x: unknown field "provider"`},
		{"an unknown field of an entry", replaced(`"execConfig"`, `"exeConfig"`), `provider file x: providers[0] ("secretreader"): unknown field "exeConfig"`},
		{"an unknown field of execConfig", replaced(`"command"`, `"comand"`), `providers[0] ("secretreader"): unknown field "execConfig.comand"`},
		{"an unknown field of rollcall", replaced(`"allowPlainHTTP"`, `"allowHTTP"`), `providers[0] ("secretreader"): unknown field "rollcall.allowHTTP"`},
		{"a field of rollcall beside it", replaced(`"rollcall":{"allowedServers":["*.example.com"],"allowPlainHTTP":true}`, `"allowedServers":[]`),
			`providers[0] ("secretreader"): unknown field "allowedServers"`},
		{"a field in another case", replaced(`"command"`, `"Command"`), `unknown field "execConfig.Command"`},
		{"a duplicate field", replaced(`"args":null`, `"args":null,"args":[]`), `"args" already set`},
		{"a string for a list", replaced(`"args":null`, `"args":"--x"`), `providers[0] ("secretreader"): json: cannot unmarshal string into Go struct field ExecConfig.execConfig.args of type []string`},
		{"a number in a list of strings", replaced(`"args":null`, `"args":["a",5]`), `providers[0] ("secretreader"): json: cannot unmarshal number into Go struct field ExecConfig.execConfig.args of type string`},
		{"a mapping for variables", replaced(`[{"name":"A","value":"b"}]`, `{"A":"b"}`), `providers[0] ("secretreader"): json: cannot unmarshal object into Go struct field ExecConfig.execConfig.env`},
		{"a variable that is true", replaced(`"b"`, `true`), `execConfig.env.value of type string`},
		{"a string for true", replaced(`true`, `"yes"`), `execConfig.provideClusterInfo of type bool`},
		{"a list for a mapping", `{"providers":[{"name":"a","execConfig":[]}]}`, `providers[0] ("a"): json: cannot unmarshal array into Go struct field Provider.execConfig`},
		{"a name that is a number", `{"providers":[{"name":5}]}`, `providers[0] (""): json: cannot unmarshal number into Go struct field Provider.name`},
		{"an entry that is a string", `{"providers":["a"]}`, `providers[0] (""): json: cannot unmarshal string into Go value of type`},
		{"one entry instead of a list", `{"providers":{"name":"a"}}`, `provider file x: json: cannot unmarshal object into Go struct field .providers`},
		{"a list instead of a mapping", `[{"name":"a"}]`, `provider file x: json: cannot unmarshal array into Go value`},
		{"a word instead of a mapping", `providers`, `provider file x: json: cannot unmarshal string into Go value`},
		{"an entry instead of the file", `{"name":"a","execConfig":{}}`, `provider file x: unknown field "execConfig"`},
		{"two documents", "providers: []\n---\nproviders: []\n", "provider file x: more than one YAML document"},
		{"two documents, the second one broken", "providers: []\n---\n\t{", "provider file x: more than one YAML document"},
		{"two objects", `{"providers":[]} {"providers":[]}`, "provider file x: more than one YAML document"},
		{"a duplicate name", duplicate, `provider file x: providers[1] ("secretreader"): name: already used by an earlier entry`},
		{"an empty name", replaced(`"secretreader"`, `""`), `provider file x: providers[0] (""): name: must not be empty`},
		{"no execConfig", `{"providers":[{"name":"a"}]}`, `providers[0] ("a"): execConfig: is required`},
		{"no command", replaced(`/plugins/x`, ``), `providers[0] ("secretreader"): execConfig.command: must not be empty`},
		{"a command that is a folder", replaced(`/plugins/x`, `..`), `execConfig.command: ".." is not the name of a program`},
		{"no apiVersion", replaced(`"client.authentication.k8s.io/v1"`, `""`), `execConfig.apiVersion: "" is neither`},
		{"an old apiVersion", replaced(`.io/v1"`, `.io/v1alpha1"`), `execConfig.apiVersion: "client.authentication.k8s.io/v1alpha1" is neither`},
		{"a misspelled policy for arguments", replaced(`"Append"`, `"append"`), `profileSourcedCLIArgsPolicy: "append" is neither Append nor Ignore`},
		{"a misspelled policy for variables", replaced(`"AppendIfNotExists"`, `"Append"`), `profileSourcedEnvVarsPolicy: "Append" is none of`},
		{"a variable without a name", replaced(`"A"`, `""`), `execConfig.env[0].name: "" is not the name of a variable`},
		{"the request as a variable", replaced(`"A"`, `"KUBERNETES_EXEC_INFO"`), `execConfig.env[0].name: KUBERNETES_EXEC_INFO is set by the caller`},
		{"a plugin that needs a terminal", replaced(`"args":null`, `"interactiveMode":"Always"`), `execConfig.interactiveMode: "Always" is not possible`},
		{"an invalid allowed variable", rollcall(`{"allowedProfileEnvVars":["A=b"]}`), `rollcall.allowedProfileEnvVars[0]: "A=b" is not the name of a variable`},
		{"an invalid inherited variable", rollcall(`{"inheritedEnvVars":["A",""]}`), `rollcall.inheritedEnvVars[1]: "" is not the name of a variable`},
		{"variables for a plugin in this process", rollcall(`{"inProcess":"p"}`), `execConfig.env: a plugin in this process has no environment`},
		{"variables of profiles for a plugin in this process", `{"providers":[{"name":"a","rollcall":{"inProcess":"p"},"profileSourcedEnvVarsPolicy":"Replace"}]}`,
			`profileSourcedEnvVarsPolicy: a plugin in this process has no environment`},
		{"inheritance for a plugin in this process", `{"providers":[{"name":"a","rollcall":{"inProcess":"p","inheritedEnvVars":[]}}]}`,
			`rollcall.inheritedEnvVars: a plugin in this process has no environment`},
		{"an empty list", rollcall(`{"allowedServers":[]}`), `rollcall.allowedServers: must not be empty, omit it for the default`},
		{"an empty list of namespaces", rollcall(`{"allowedProfileNamespaces":[]}`), `rollcall.allowedProfileNamespaces: must not be empty, omit it for the default`},
		{"an empty manager", rollcall(`{"allowedClusterManagers":["a",""]}`), `rollcall.allowedClusterManagers[1]: "" is not a name`},
		{"an allowed server that is a URL", rollcall(`{"allowedServers":["https://x"]}`), `rollcall.allowedServers[0]: "https://x" is not a host`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := providerfile.Parse("x", []byte(test.content))
			g.Expect(err).To(MatchError(ContainSubstring(test.text)))
			g.Expect(err.Error()).To(HavePrefix("provider file x: "))
		})
	}
}

// rollcall returns goodFile with another value of that field.
func rollcall(value string) string {
	before, _, _ := strings.Cut(goodFile, `"rollcall":`)
	return before + `"rollcall":` + value + "}]}"
}

func TestAllErrorsAreReturned(t *testing.T) {
	g := NewWithT(t)
	_, err := providerfile.Parse("x", []byte(`{"providers":[{"name":""},{"name":"b"}]}`))
	g.Expect(err).To(MatchError(And(ContainSubstring("providers[0]"), ContainSubstring("providers[1]"))))
	_, err = providerfile.Parse("x", []byte(`{"providers":[{"nam":""},{"name":5}]}`))
	g.Expect(err).To(MatchError(And(ContainSubstring("providers[0]"), ContainSubstring("providers[1]"))))
}

func TestEmptyDocuments(t *testing.T) {
	g := NewWithT(t)
	for _, content := range []string{"---\nproviders: []\n---\n", "# first\n---\nproviders: []\n...\n", "providers: []\n---\n# last\n"} {
		_, err := providerfile.Parse("x", []byte(content))
		g.Expect(err).NotTo(HaveOccurred(), content)
	}
}
