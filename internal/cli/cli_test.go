// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
)

// TestCommands holds each command to what users expect of all.
func TestCommands(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := New(command.NewTerminal(streams))
	for _, c := range commandsBelow(root) {
		t.Run(c.CommandPath(), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(c.Short).NotTo(BeEmpty())
			g.Expect(c.Short).NotTo(HaveSuffix("."))
			if c.HasSubCommands() {
				return
			}
			g.Expect(c.Example).To(ContainSubstring("mc-credential "), "an example")
			if output := c.Flags().Lookup("output"); g.Expect(output).NotTo(BeNil(), "-o") {
				g.Expect(output.Usage).To(ContainSubstring("json"))
			}
			c.Flags().VisitAll(func(f *pflag.Flag) {
				g.Expect(f.Usage).NotTo(BeEmpty(), "help of --%s", f.Name)
			})
		})
	}
}

func commandsBelow(root *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range root.Commands() {
		all = append(append(all, c), commandsBelow(c)...)
	}
	return all
}

// TestHelpIsTheSameEverywhere runs the help with an environment that sets defaults.
func TestHelpIsTheSameEverywhere(t *testing.T) {
	g := NewWithT(t)
	help := func() string {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		g.Expect(Run(t.Context(), command.NewTerminal(streams), []string{"mc-credential", "list", "--help"})).To(Equal(command.ExitOK))
		return out.String()
	}
	plain := help()
	t.Setenv("MC_CREDENTIAL_PROVIDER_FILE", "/secret/providers.yaml")
	t.Setenv("MC_CREDENTIAL_PLUGIN_DIRS", "/secret")
	g.Expect(help()).To(Equal(plain))
}

func TestErrors(t *testing.T) {
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{"a command that does not exist", []string{"lits"}, command.ExitUsage, `error: unknown command "lits" (did you mean "list"?): see 'mc-credential --help'`},
		{"a flag that does not exist", []string{"list", "--form=file"}, command.ExitUsage, "error: unknown flag: --form: see 'mc-credential list --help'"},
		{"an argument too many", []string{"version", "x"}, command.ExitUsage, "see 'mc-credential version --help'"},
		{"a flag of another inventory", []string{"list", "--file=x"}, command.ExitUsage, "error: --file and --dir need --from=file"},
		{"no hub", []string{"list", "--kubeconfig=/does/not/exist"}, command.ExitFailed, "error: configuration for the hub: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			code := Run(t.Context(), command.NewTerminal(streams), append([]string{"mc-credential"}, test.args...))
			g.Expect(code).To(Equal(test.code))
			g.Expect(errOut.String()).To(ContainSubstring(test.want))
			g.Expect(strings.Count(errOut.String(), "\n")).To(Equal(1), "one line")
			g.Expect(out.String()).To(BeEmpty())
		})
	}
}

func TestKubectlPlugin(t *testing.T) {
	g := NewWithT(t)
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	g.Expect(Run(t.Context(), command.NewTerminal(streams), []string{"/bin/kubectl-mc_credential", "list", "--help"})).To(Equal(command.ExitOK))
	g.Expect(out.String()).To(ContainSubstring("kubectl mc-credential list [PROFILE...]"))
}

// TestKrewManifest fills in the template as krew-release-bot does.
func TestKrewManifest(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join("..", "..", ".krew.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	addURIAndSha := func(uri, tag string) string {
		return "uri: " + strings.ReplaceAll(uri, "{{ .TagName }}", tag) + "\n    sha256: 00"
	}
	manifest, err := template.New("").Funcs(template.FuncMap{"addURIAndSha": addURIAndSha}).Parse(string(text))
	g.Expect(err).NotTo(HaveOccurred())
	var filled bytes.Buffer
	g.Expect(manifest.Execute(&filled, map[string]string{"TagName": "v1.2.3"})).To(Succeed())
	var plugin struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				URI string
				Bin string
			}
		}
	}
	g.Expect(yaml.Unmarshal(filled.Bytes(), &plugin)).To(Succeed())
	g.Expect(plugin.Metadata.Name).To(Equal("mc-credential"))
	g.Expect(plugin.Spec.Version).To(Equal("v1.2.3"))
	g.Expect(plugin.Spec.Platforms).To(HaveLen(4))
	for _, platform := range plugin.Spec.Platforms {
		g.Expect(platform.URI).To(ContainSubstring("/v1.2.3/mc-credential_"))
		g.Expect(platform.Bin).To(Equal("mc-credential"))
	}
}
