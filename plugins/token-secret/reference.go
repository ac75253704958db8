// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// defaultKey is the key of a Secret's data where the profile gives none.
const defaultKey = "token"

// config is what a profile says to the plugin.
type config struct {
	SecretRef *reference `json:"secretRef"`

	// ClusterName is the form of an older plugin.
	ClusterName string `json:"clusterName"`
}

// reference names one key of a Secret.
type reference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Key       string `json:"key"`
}

// String names the Secret and the key.
func (r *reference) String() string {
	return fmt.Sprintf("secret %s/%s, key %q", r.Namespace, r.Name, r.Key)
}

// decodeReference returns the request's reference, whose namespace may be
// empty.
func decodeReference(request plugin.Request) (*reference, error) {
	c, err := plugin.DecodeConfig[config](request)
	if err != nil {
		return nil, err
	}
	ref, field := c.SecretRef, "secretRef.name"
	switch {
	case ref != nil && c.ClusterName != "":
		return nil, fmt.Errorf("%w: config of the cluster: secretRef and clusterName exclude each other", plugin.ErrBadRequest)
	case ref == nil && c.ClusterName == "":
		return nil, fmt.Errorf("%w: config of the cluster: secretRef must be given", plugin.ErrBadRequest)
	case ref == nil:
		ref, field = &reference{Name: c.ClusterName}, "clusterName"
	}
	if ref.Key == "" {
		ref.Key = defaultKey
	}
	for _, check := range []struct {
		field    string
		problems []string
	}{
		{field, validation.IsDNS1123Subdomain(ref.Name)},
		{"secretRef.key", validation.IsConfigMapKey(ref.Key)},
		{"secretRef.namespace", namespaceProblems(ref.Namespace)},
	} {
		if len(check.problems) > 0 {
			return nil, fmt.Errorf("%w: config of the cluster: %s: %s",
				plugin.ErrBadRequest, check.field, strings.Join(check.problems, ", "))
		}
	}
	return ref, nil
}

func namespaceProblems(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return validation.IsDNS1123Label(namespace)
}
