// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Fault is what is wrong with a field.
type Fault struct {
	// Field is the path, such as "status.accessProviders[0].cluster.server".
	Field string `json:"field"`
	// Message does not repeat the value.
	Message string `json:"message"`
}

// managerName is the pattern of the manager's name, a label value.
var managerName = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)

// V1alpha2Faults returns why an API server would reject the profile, or its status, if
// it was written in v1alpha2: the rules of that version's schema which v1alpha1 does
// not have, and those of lists whose entries have a key, for which both are the same.
// Fields that v1alpha2 does not have are no faults, as the API server drops them.
func V1alpha2Faults(profile *inventory.Profile) []Fault {
	f := &faults{}
	manager := profile.Spec.ClusterManager.Name
	path := field.NewPath("spec", "clusterManager", "name")
	f.length(path, manager, 63)
	if manager != "" && !managerName.MatchString(manager) {
		f.add(path, "must be a label value: letters, digits, '-', '_' and '.', with a letter or a digit at both ends")
	}

	path = field.NewPath("status", "properties")
	names := map[string]bool{}
	for i, property := range profile.Status.Properties {
		f.length(path.Index(i).Child("name"), property.Name, 253)
		f.length(path.Index(i).Child("value"), property.Value, 1024)
		f.unique(path.Index(i).Child("name"), names, property.Name)
	}

	path = field.NewPath("status", "accessProviders")
	if len(profile.Status.AccessProviders) > 64 {
		f.add(path, fmt.Sprintf("has %d entries, at most 64 are allowed", len(profile.Status.AccessProviders)))
	}
	names = map[string]bool{}
	for i := range profile.Status.AccessProviders {
		provider := &profile.Status.AccessProviders[i]
		f.length(path.Index(i).Child("name"), provider.Name, 253)
		f.unique(path.Index(i).Child("name"), names, provider.Name)
		f.cluster(path.Index(i).Child("cluster"), provider)
	}
	return f.all
}

type faults struct{ all []Fault }

func (f *faults) add(path *field.Path, message string) {
	f.all = append(f.all, Fault{Field: path.String(), Message: message})
}

// length requires one character at least.
func (f *faults) length(path *field.Path, text string, limit int) {
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		f.add(path, "must not be empty")
	case n > limit:
		f.add(path, fmt.Sprintf("has %d characters, at most %d are allowed", n, limit))
	}
}

func (f *faults) unique(path *field.Path, seen map[string]bool, name string) {
	if seen[name] {
		f.add(path, "must be unique")
	}
	seen[name] = true
}

func (f *faults) cluster(path *field.Path, provider *inventory.AccessProvider) {
	cluster := &provider.Cluster
	f.length(path.Child("server"), cluster.Server, 2048)
	if cluster.Server != "" && !isURL(cluster.Server) {
		f.add(path.Child("server"), "must be an absolute URL with a host")
	}
	if cluster.ProxyURL != "" {
		f.length(path.Child("proxy-url"), cluster.ProxyURL, 2048)
		if !isURL(cluster.ProxyURL, "http", "https", "socks5") {
			f.add(path.Child("proxy-url"), "must be a URL of http, https or socks5 with a host")
		}
	}
	if utf8.RuneCountInString(cluster.TLSServerName) > 253 {
		f.add(path.Child("tls-server-name"), "at most 253 characters are allowed")
	}
	names := map[string]bool{}
	for i, extension := range cluster.Extensions {
		f.unique(path.Child("extensions").Index(i).Child("name"), names, extension.Name)
		raw := strings.TrimSpace(string(extension.Extension.Raw))
		if extension.Extension.Object == nil && !strings.HasPrefix(raw, "{") {
			f.add(path.Child("extensions").Index(i).Child("extension"), "must be a JSON object")
		}
	}
}

// isURL reports whether the text is an absolute URL with a host, and one of the schemes
// if there are any. It parses as the expressions of API servers (CEL) do.
func isURL(text string, schemes ...string) bool {
	parsed, err := url.ParseRequestURI(text)
	return err == nil && parsed.IsAbs() && parsed.Hostname() != "" && (len(schemes) == 0 || slices.Contains(schemes, parsed.Scheme))
}

// droppedField is a field that v1alpha2 does not have.
type droppedField struct{ path, remedy string }

func dropped(profile *inventory.Profile) []droppedField {
	var found []droppedField
	if len(profile.Status.CredentialProviders) > 0 {
		found = append(found, droppedField{"status.credentialProviders", "write status.accessProviders instead"})
	}
	for i := range profile.Status.AccessProviders {
		if profile.Status.AccessProviders[i].Cluster.CertificateAuthority != "" {
			path := field.NewPath("status", "accessProviders").Index(i).Child("cluster", "certificate-authority")
			found = append(found, droppedField{path.String(), "write certificate-authority-data instead: other hosts do not have the file"})
		}
	}
	return found
}

// fieldErrors returns the errors of inventory.Validate.
func fieldErrors(err error) []Fault {
	aggregate, ok := err.(utilerrors.Aggregate) //nolint:errorlint // Not wrapped.
	if !ok {
		return nil
	}
	var found []Fault
	for _, err := range aggregate.Errors() {
		if fault, ok := err.(*field.Error); ok { //nolint:errorlint // Not wrapped.
			message := fault.Detail
			if message == "" {
				message = fault.Type.String()
			}
			found = append(found, Fault{Field: fault.Field, Message: message})
		}
	}
	return found
}
