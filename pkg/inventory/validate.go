// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

const (
	maxPropertyName  = 253
	maxPropertyValue = 1024
	maxClusterID     = 128
	maxProviders     = 64
	maxProviderName  = 253
	maxURL           = 2048
	maxTLSServerName = 253
)

var privateKey = []byte("PRIVATE KEY-----")

// Validate returns all errors of a profile: violations of the API's schema
// (KEP-4322), in the versions v1alpha1 and v1alpha2, and of its text (the label with
// the manager's name, an ID as in KEP-2149), and content that must not be in a
// profile: passwords in URLs, private keys and file paths.
func Validate(profile *Profile) error {
	metadata := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&profile.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadata)

	manager := profile.Spec.ClusterManager.Name
	managerPath := field.NewPath("spec", "clusterManager", "name")
	if manager == "" {
		errs = append(errs, field.Required(managerPath, "must be the name of the cluster manager"))
	} else {
		for _, message := range validation.IsValidLabelValue(manager) {
			errs = append(errs, field.Invalid(managerPath, manager, message))
		}
	}
	if label := profile.Labels[v1alpha1.LabelClusterManagerKey]; label != manager {
		errs = append(errs, field.Invalid(metadata.Child("labels").Key(v1alpha1.LabelClusterManagerKey), label, "must be the name of the cluster manager"))
	}
	if id, ok := profile.Labels[LabelMemberID]; ok && id == "" {
		errs = append(errs, field.Required(metadata.Child("labels").Key(LabelMemberID), "must be omitted if there is no member ID"))
	}

	status := field.NewPath("status")
	errs = append(errs, metav1validation.ValidateConditions(profile.Status.Conditions, status.Child("conditions"))...)
	errs = append(errs, validateProperties(profile.Status.Properties, status.Child("properties"))...)
	errs = append(errs, validateAccess(profile.Status.AccessProviders, status.Child("accessProviders"))...)
	errs = append(errs, validateAccess(profile.Status.CredentialProviders, status.Child("credentialProviders"))...)
	return errs.ToAggregate()
}

func validateProperties(properties []v1alpha1.Property, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, property := range properties {
		path := path.Index(i)
		errs = append(errs, validateLength(property.Name, maxPropertyName, path.Child("name"))...)
		errs = append(errs, validateLength(property.Value, maxPropertyValue, path.Child("value"))...)
		if names.Has(property.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), property.Name))
		}
		names.Insert(property.Name)
		if property.Name == PropertyClusterID {
			errs = append(errs, validateLength(property.Value, maxClusterID, path.Child("value"))...)
			for _, message := range validation.IsDNS1123Subdomain(property.Value) {
				errs = append(errs, field.Invalid(path.Child("value"), property.Value, message))
			}
		}
	}
	return errs
}

func validateLength(text string, limit int, path *field.Path) field.ErrorList {
	switch {
	case text == "":
		return field.ErrorList{field.Required(path, "")}
	case utf8.RuneCountInString(text) > limit:
		return field.ErrorList{field.TooLong(path, "", limit)}
	}
	return nil
}

func validateAccess(providers []AccessProvider, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(providers) > maxProviders {
		errs = append(errs, field.TooMany(path, len(providers), maxProviders))
	}
	names := sets.New[string]()
	for i := range providers {
		provider, path := &providers[i], path.Index(i)
		errs = append(errs, validateLength(provider.Name, maxProviderName, path.Child("name"))...)
		if names.Has(provider.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), provider.Name))
		}
		names.Insert(provider.Name)

		cluster, path := &provider.Cluster, path.Child("cluster")
		errs = append(errs, validateLength(cluster.Server, maxURL, path.Child("server"))...)
		if cluster.Server != "" {
			errs = append(errs, validateURL(cluster.Server, path.Child("server"))...)
		}
		if cluster.ProxyURL != "" {
			errs = append(errs, validateLength(cluster.ProxyURL, maxURL, path.Child("proxy-url"))...)
			errs = append(errs, validateURL(cluster.ProxyURL, path.Child("proxy-url"), "http", "https", "socks5")...)
		}
		if len(cluster.TLSServerName) > maxTLSServerName {
			errs = append(errs, field.TooLong(path.Child("tls-server-name"), "", maxTLSServerName))
		}
		if cluster.CertificateAuthority != "" {
			errs = append(errs, field.Forbidden(path.Child("certificate-authority"), "must not be a path, as other hosts do not have the file; use certificate-authority-data"))
		}
		if bytes.Contains(cluster.CertificateAuthorityData, privateKey) {
			errs = append(errs, field.Forbidden(path.Child("certificate-authority-data"), "must not contain a private key"))
		}
		extensions := sets.New[string]()
		for j, extension := range cluster.Extensions {
			path := path.Child("extensions").Index(j)
			if extension.Name == "" {
				errs = append(errs, field.Required(path.Child("name"), ""))
			}
			if extensions.Has(extension.Name) {
				errs = append(errs, field.Duplicate(path.Child("name"), extension.Name))
			}
			extensions.Insert(extension.Name)
			if err := validateExtension(extension.Extension); err != nil {
				errs = append(errs, field.Forbidden(path.Child("extension"), err.Error()))
			}
		}
	}
	return errs
}

// validateURL requires an absolute URL with a host, and one of the schemes if there
// are any. It does not repeat the URL, which may contain a secret.
func validateURL(text string, path *field.Path, schemes ...string) field.ErrorList {
	parsed, err := url.Parse(text)
	switch {
	case err != nil || !parsed.IsAbs() || parsed.Hostname() == "":
		return field.ErrorList{field.Forbidden(path, "must be an absolute URL with a host")}
	case len(schemes) > 0 && !slices.Contains(schemes, parsed.Scheme):
		return field.ErrorList{field.Forbidden(path, "must have one of the schemes "+strings.Join(schemes, ", "))}
	case parsed.User != nil:
		return field.ErrorList{field.Forbidden(path, "must not contain credentials")}
	}
	return nil
}

// validateExtension returns an error unless the extension is a JSON object, as the
// API's schema requires.
func validateExtension(extension json.Marshaler) error {
	text, err := extension.MarshalJSON()
	if err != nil {
		return errors.New("must be JSON")
	}
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return errors.New("must be a JSON object")
	}
	if bytes.Contains(text, privateKey) {
		return errors.New("must not contain a private key")
	}
	return nil
}
