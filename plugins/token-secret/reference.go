// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// config is the config in a profile.
type config struct {
	SecretRef *reference `json:"secretRef"`

	// ClusterName is the form of an older plugin: the key "token" of the Secret
	// with this name in the plugin's own namespace.
	ClusterName string `json:"clusterName"`

	// The form of another older plugin: a Secret with a kubeconfig.
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
	Context   string `json:"context"`
}

// reference selects a credential in a Secret.
type reference struct {
	Namespace string `json:"namespace"` // default: the plugin's own
	Name      string `json:"name"`
	Key       string `json:"key"`     // default: the first known key
	Context   string `json:"context"` // of a kubeconfig; default: its current context

	kubeconfig bool // the content must be a kubeconfig
}

// String names the Secret and, if there is one, the key.
func (r *reference) String() string {
	if r.Key == "" {
		return fmt.Sprintf("secret %s/%s", r.Namespace, r.Name)
	}
	return fmt.Sprintf("secret %s/%s, key %q", r.Namespace, r.Name, r.Key)
}

// decodeReference returns the request's reference. The namespace may be empty.
func decodeReference(request plugin.Request) (*reference, error) {
	c, err := plugin.DecodeConfig[config](request)
	if err != nil {
		return nil, err
	}
	ref, prefix, err := c.reference()
	if err != nil {
		return nil, fmt.Errorf("%w: config of the cluster: %w", plugin.ErrBadRequest, err)
	}
	nameField := prefix + "name"
	if c.ClusterName != "" {
		nameField = "clusterName"
	}
	for _, check := range []struct {
		field    string
		problems []string
	}{
		{nameField, validation.IsDNS1123Subdomain(ref.Name)},
		{prefix + "key", unlessEmpty(ref.Key, validation.IsConfigMapKey)},
		{prefix + "namespace", unlessEmpty(ref.Namespace, validation.IsDNS1123Label)},
	} {
		if len(check.problems) > 0 {
			return nil, fmt.Errorf("%w: config of the cluster: %s: %s",
				plugin.ErrBadRequest, check.field, strings.Join(check.problems, ", "))
		}
	}
	return ref, nil
}

// reference returns the reference of any form, and the prefix of its fields.
func (c *config) reference() (ref *reference, prefix string, err error) {
	flat := c.Name != "" || c.Namespace != "" || c.Key != "" || c.Context != ""
	switch {
	case c.SecretRef != nil && c.ClusterName != "":
		return nil, "", errors.New("secretRef and clusterName are mutually exclusive")
	case c.SecretRef != nil && flat:
		return nil, "", errors.New("secretRef must not be combined with name, namespace, key and context")
	case c.ClusterName != "" && flat:
		return nil, "", errors.New("clusterName must not be combined with name, namespace, key and context")
	case c.SecretRef != nil:
		return c.SecretRef, "secretRef.", nil
	case c.ClusterName != "":
		return &reference{Name: c.ClusterName, Key: tokenKey}, "", nil
	case flat:
		return &reference{Namespace: c.Namespace, Name: c.Name, Key: c.Key, Context: c.Context, kubeconfig: true}, "", nil
	}
	return nil, "", errors.New("secretRef must be given")
}

func unlessEmpty(text string, check func(string) []string) []string {
	if text == "" {
		return nil
	}
	return check(text)
}
