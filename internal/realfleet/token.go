// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package realfleet

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// tokenLifetime is long enough for a quickstart that is kept running.
const tokenLifetime = 24 * time.Hour

// IssueToken returns a token for the service account. With a bound Secret it is
// valid as long as the Secret exists.
func (cp *ControlPlane) IssueToken(ctx context.Context, account *corev1.ServiceAccount, bound *corev1.Secret) (string, error) {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds())),
		},
	}
	if bound != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			Kind: "Secret", APIVersion: "v1", Name: bound.Name, UID: bound.UID,
		}
	}
	if err := cp.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token in %s: %w", cp.Name, err)
	}
	return request.Status.Token, nil
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
