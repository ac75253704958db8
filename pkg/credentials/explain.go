// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/execplugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/redact"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Explanation is how a cluster is reached and how its credential is obtained. It
// contains no secret: values that may be one are replaced by "[redacted]". The names
// of the fields in JSON are stable.
type Explanation struct {
	// Profile is the profile's namespace and name. Access.Explain does not set it.
	Profile string `json:"profile,omitempty"`

	// Candidates are the providers of the resolver, in the order of precedence, then
	// those that only the profile lists. Only a Resolver sets it.
	Candidates []Candidate `json:"candidates,omitempty"`

	// Provider is the name of the provider that is used, or "" if there is none.
	Provider string `json:"provider,omitempty"`

	// Error is why there is no access to the cluster, or "".
	Error string `json:"error,omitempty"`

	// Server is the URL of the API server, or "" if it is not known.
	Server string `json:"server,omitempty"`

	// ProxyURL is the proxy of the profile or the configuration, or "" for that of the
	// environment, if any.
	ProxyURL string `json:"proxyURL,omitempty"`

	// TLSServerName is the name in the server's certificate, if it is not the host.
	TLSServerName string `json:"tlsServerName,omitempty"`

	// InsecureSkipTLSVerify means that the server's certificate is not verified.
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`

	// Kind is what the configuration has as a credential, or "" if there is no access.
	Kind CredentialKind `json:"kind,omitempty"`

	// Plugin is what runs to obtain the credential, or nil if nothing does.
	Plugin *PluginExplanation `json:"plugin,omitempty"`
}

// Candidate is a provider, and why it is used or not.
type Candidate struct {
	Name   string `json:"name"`
	Chosen bool   `json:"chosen"`
	Reason string `json:"reason"`
}

// PluginExplanation is a run of a plugin.
type PluginExplanation struct {
	// InProcess is the name of the plugin if it is part of this program, and Version
	// its version.
	InProcess string `json:"inProcess,omitempty"`
	Version   string `json:"version,omitempty"`

	// Command is the configured command, and Path the executable that is run. If there
	// is none, Path is where it could be.
	Command string `json:"command,omitempty"`
	Path    string `json:"path,omitempty"`

	// Missing is why the plugin cannot be run, or "". InstallHint is the provider's
	// hint on how to install it.
	Missing     string `json:"missing,omitempty"`
	InstallHint string `json:"installHint,omitempty"`

	// SHA256 are the digests of which the executable must have one, if any.
	SHA256 []string `json:"sha256,omitempty"`

	// Args are the arguments, and Env the environment.
	Args []ExplainedArg      `json:"args"`
	Env  []ExplainedVariable `json:"env"`

	// Request is the content of KUBERNETES_EXEC_INFO, an ExecCredential. Of the
	// profile's config, values that look like a secret are replaced.
	Request json.RawMessage `json:"request,omitempty"`

	// Dropped is what the profile asks for and the plugin does not get.
	Dropped []DroppedExtension `json:"dropped,omitempty"`
}

// ExplainedArg is an argument of a plugin.
type ExplainedArg struct {
	Value string `json:"value"`
	// From is "provider" or "profile", or "kubeconfig".
	From string `json:"from"`
}

// ExplainedVariable is an environment variable of a plugin.
type ExplainedVariable struct {
	Name string `json:"name"`
	// Value is "[redacted]" unless variables of the name are known to have no secret.
	Value string `json:"value"`
	// From is "process" if the plugin inherits it of this process, "provider",
	// "profile", "kubeconfig" or, for KUBERNETES_EXEC_INFO, "request".
	From string `json:"from"`
}

// DroppedExtension is what the plugin does not get of an extension of the profile.
type DroppedExtension struct {
	Extension string   `json:"extension"`
	Args      []string `json:"args,omitempty"`
	Variables []string `json:"variables,omitempty"` // their names
	Reason    string   `json:"reason"`
}

// Explain returns what Resolve would do for the profile and what would be run. It runs
// nothing. If Resolve would fail, it returns the same error and what was decided
// before.
func (r *Resolver) Explain(ctx context.Context, profile *inventory.Profile) (*Explanation, error) {
	p, err := r.plan(ctx, profile)
	if err != nil {
		e := &Explanation{Profile: inventory.KeyOf(profile).String(), Candidates: p.candidates(profile), Error: err.Error()}
		if p.provider != nil {
			e.Provider = p.provider.Name
		}
		return e, err
	}
	access := p.access(r, profile)
	defer access.Release()
	e := access.Explain()
	e.Profile, e.Candidates = inventory.KeyOf(profile).String(), p.candidates(profile)
	return e, nil
}

// Explain returns how the cluster is reached and what is run for the credential. It
// runs nothing and does not block.
func (a *Access) Explain() *Explanation {
	e := &Explanation{Provider: a.Provider(), Server: a.Server()}
	a.backend().explain(e)
	return e
}

// candidates returns all providers, with the reason why they are used or not.
func (p *plan) candidates(profile *inventory.Profile) []Candidate {
	offers := inventory.AccessProviders(profile)
	offered := make(map[string]bool, len(offers))
	for i := range offers {
		offered[offers[i].Name] = true
	}
	known := make(map[string]bool, len(p.providers))
	var all []Candidate
	for i := range p.providers {
		provider := &p.providers[i]
		c := Candidate{Name: provider.Name}
		switch {
		case provider == p.provider:
			c.Chosen, c.Reason = true, "the first provider that the profile lists"
		case known[provider.Name]:
			c.Reason = "an earlier provider has the same name"
		case offered[provider.Name]:
			c.Reason = "the profile lists it, and an earlier provider too"
		default:
			c.Reason = "the profile does not list it"
		}
		known[provider.Name] = true
		all = append(all, c)
	}
	for i := range offers {
		if name := offers[i].Name; !known[name] {
			all = append(all, Candidate{Name: name, Reason: "only the profile lists it, no provider is configured for it"})
		}
	}
	return all
}

func (m *managedBackend) explain(e *Explanation) {
	e.ProxyURL, e.TLSServerName, e.InsecureSkipTLSVerify = redact.Text(m.endpoint.ProxyURL), m.endpoint.ServerName, m.endpoint.Insecure
	e.Kind = KindOfPlugin
	i := m.invocation
	run := &PluginExplanation{InProcess: i.InProcess, Command: i.Command, SHA256: i.SHA256, Args: []ExplainedArg{}}
	if i.InProcess != "" {
		run.Command, run.SHA256 = "", nil
		var found bool
		if run.Version, found = m.resolver.runner.Version(i.InProcess); !found {
			run.Missing = "it is not linked into this program"
		}
	} else {
		var err error
		if run.Path, err = m.resolver.runner.Locate(i.Command); err != nil {
			run.Missing, run.InstallHint = err.Error(), i.Hint
		}
	}
	for n, arg := range redact.Args(i.Args) {
		from := execplugin.FromProvider
		if n >= i.ProviderArgs() {
			from = execplugin.FromProfile
		}
		run.Args = append(run.Args, ExplainedArg{Value: arg, From: from})
	}
	for _, variable := range i.Environment(os.Environ()) {
		run.Env = append(run.Env, explainVariable(variable.Name, variable.Value, variable.From))
	}
	run.Request = explainRequest(i.ExecInfo)
	for _, d := range i.Dropped() {
		run.Dropped = append(run.Dropped, DroppedExtension{
			Extension: d.Extension, Args: redact.Args(d.Args), Variables: d.Variables, Reason: d.Reason,
		})
	}
	e.Plugin = run
}

func (s *staticBackend) explain(e *Explanation) {
	e.ProxyURL, e.TLSServerName, e.InsecureSkipTLSVerify = redact.Text(proxyOf(s.original)), s.original.ServerName, s.original.Insecure
	e.Kind = s.kind()
	if s.original.ExecProvider == nil {
		return
	}
	run := &PluginExplanation{
		Command: s.original.ExecProvider.Command, InstallHint: s.original.ExecProvider.InstallHint, Args: []ExplainedArg{},
	}
	for _, arg := range redact.Args(s.original.ExecProvider.Args) {
		run.Args = append(run.Args, ExplainedArg{Value: arg, From: fromKubeconfig})
	}
	for _, variable := range s.original.ExecProvider.Env {
		run.Env = append(run.Env, explainVariable(variable.Name, variable.Value, fromKubeconfig))
	}
	e.Plugin = run
}

const fromKubeconfig = "kubeconfig"

// kind returns the kind of the configuration's credential. It reads no file.
func (s *staticBackend) kind() CredentialKind {
	config := s.original
	token := config.BearerToken != "" || config.BearerTokenFile != ""
	certificate := len(config.CertData) > 0 || config.CertFile != ""
	switch {
	case config.ExecProvider != nil || config.AuthProvider != nil:
		return KindOfPlugin
	case config.Username != "":
		return KindBasic
	case token && certificate:
		return KindTokenAndCertificate
	case certificate:
		return KindCertificate
	case token:
		return KindToken
	case config.Transport != nil || config.WrapTransport != nil:
		return KindOfConfiguration
	}
	return KindNone
}

// explainVariable hides the value of a variable that is not known to have no secret.
func explainVariable(name, value, from string) ExplainedVariable {
	shown := redact.Mark
	switch {
	case name == rules.ExecInfoVariable:
		shown = string(explainRequest(value))
	case value == "":
		shown = ""
	case readableVariables[name] && redact.Text(value) == value:
		shown = value
	}
	return ExplainedVariable{Name: name, Value: shown, From: from}
}

// readableVariables have places, names and addresses as values.
var readableVariables = map[string]bool{
	"HOME": true, "HOSTNAME": true, "LANG": true, "LC_ALL": true, "PATH": true, "PWD": true, "SHELL": true,
	"TERM": true, "TMPDIR": true, "TZ": true, "USER": true,
	"KUBECONFIG": true, "KUBERNETES_SERVICE_HOST": true, "KUBERNETES_SERVICE_PORT": true,
	"NO_PROXY": true, "no_proxy": true, "SSL_CERT_DIR": true, "SSL_CERT_FILE": true,
	"AWS_CONFIG_FILE": true, "AWS_DEFAULT_REGION": true, "AWS_PROFILE": true, "AWS_REGION": true, "AWS_ROLE_ARN": true,
	"AWS_SHARED_CREDENTIALS_FILE": true, "AWS_WEB_IDENTITY_TOKEN_FILE": true,
	"AZURE_AUTHORITY_HOST": true, "AZURE_CLIENT_ID": true, "AZURE_FEDERATED_TOKEN_FILE": true, "AZURE_TENANT_ID": true,
	"CLOUDSDK_CONFIG": true, "CLOUDSDK_CORE_PROJECT": true, "GCE_METADATA_HOST": true,
	"GOOGLE_APPLICATION_CREDENTIALS": true, "GOOGLE_CLOUD_PROJECT": true,
}

// explainRequest returns the request to a plugin, with what looks like a secret in the
// profile's config replaced. All else in it is no secret.
func explainRequest(execInfo string) json.RawMessage {
	var request map[string]any
	decoder := json.NewDecoder(strings.NewReader(execInfo))
	decoder.UseNumber()
	if decoder.Decode(&request) != nil {
		return nil // cannot be: we have made it
	}
	spec, _ := request["spec"].(map[string]any)
	if cluster, ok := spec["cluster"].(map[string]any); ok && cluster["config"] != nil {
		cluster["config"] = withoutSecrets("", cluster["config"])
	}
	text, err := json.Marshal(request)
	if err != nil {
		return nil
	}
	return text
}

func withoutSecrets(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		clean := make(map[string]any, len(value))
		for key, inner := range value {
			clean[redact.Text(key)] = withoutSecrets(key, inner)
		}
		return clean
	case []any:
		clean := make([]any, len(value))
		for i, inner := range value {
			clean[i] = withoutSecrets(name, inner)
		}
		return clean
	case string:
		return redact.Value(name, value)
	}
	return value
}

// Explainer is a Method that explains what it would do. A Resolver is one.
type Explainer interface {
	Method

	// Explain returns what Resolve would do for the profile, and the error that it
	// would return with what is known in spite of it.
	Explain(ctx context.Context, profile *inventory.Profile) (*Explanation, error)
}

var _ Explainer = &Resolver{}

// Explain returns what the Method would do for the profile. A Method that is no
// Explainer explains the Access that it returns.
func Explain(ctx context.Context, method Method, profile *inventory.Profile) (*Explanation, error) {
	if explainer, ok := method.(Explainer); ok {
		return explainer.Explain(ctx, profile)
	}
	key := inventory.KeyOf(profile).String()
	access, err := method.Resolve(ctx, profile)
	if err != nil {
		return &Explanation{Profile: key, Error: err.Error()}, err
	}
	defer access.Release()
	e := access.Explain()
	e.Profile = key
	return e, nil
}
