// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

const subjectPrefix = "system:serviceaccount:"

// claims are the relevant claims of a token.
type claims struct {
	Subject  string `json:"sub"`
	IssuedAt int64  `json:"iat"`
	Expiry   int64  `json:"exp"`
}

// claimsOf returns the claims of a token of a ServiceAccount. The signature is not
// verified: the cluster does that.
func claimsOf(token string) (claims, error) {
	c := claims{}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errors.New("not a token of a ServiceAccount")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &c) != nil || c.Expiry <= c.IssuedAt || c.account().Name == "" {
		return claims{}, errors.New("not a token of a ServiceAccount")
	}
	return c, nil
}

// account returns the ServiceAccount of the token.
func (c claims) account() types.NamespacedName {
	subject, found := strings.CutPrefix(c.Subject, subjectPrefix)
	namespace, name, _ := strings.Cut(subject, ":")
	if !found || !isLabel(namespace) || !isName(name) {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (c claims) expires() time.Time { return time.Unix(c.Expiry, 0).UTC() }

// due reports whether less than a third of the token's life is left.
func (c claims) due(now time.Time) bool {
	life := time.Duration(c.Expiry-c.IssuedAt) * time.Second
	return c.expires().Sub(now) < life/3
}

// requestToken requests a token of the ServiceAccount (TokenRequest).
func (c *cluster) requestToken(ctx context.Context, account types.NamespacedName, lifetime time.Duration, audiences ...string) (*authenticationv1.TokenRequest, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(lifetime.Seconds())), Audiences: audiences,
	}}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := c.SubResource("token").Create(ctx, object, request); err != nil {
		return nil, fmt.Errorf("requesting a token: %w", c.wrap(object, err))
	}
	if request.Status.Token == "" {
		return nil, fmt.Errorf("requesting a token: %w", c.wrap(object, errors.New("the API server issued an empty one")))
	}
	return request, nil
}

// reviewToken returns the user to whom the cluster says the token belongs.
func reviewToken(ctx context.Context, config *rest.Config, token string) (string, error) {
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	c, err := connect(config, "member")
	if err != nil {
		return "", err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return "", redact(err, token)
	}
	return review.Status.UserInfo.Username, nil
}

// redact returns the error without the token, which a server may have repeated.
func redact(err error, token string) error {
	if token == "" || !strings.Contains(err.Error(), token) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), token, "[redacted]"))
}

// newToken requests a token of the member's ServiceAccount and tries it.
func (s *session) newToken(ctx context.Context) (string, error) {
	account := types.NamespacedName{Namespace: s.o.MemberNamespace, Name: s.objectName()}
	request, err := s.member.requestToken(ctx, account, s.o.TokenLifetime)
	if err != nil {
		return "", err
	}
	token := request.Status.Token
	if lifetime := time.Until(request.Status.ExpirationTimestamp.Time); lifetime < s.o.TokenLifetime-time.Minute {
		s.warn("the member has shortened the lifetime of the token from %s to %s: rotate it in time", s.o.TokenLifetime, lifetime.Round(time.Minute))
	}
	user, err := reviewToken(ctx, s.member.config, token)
	switch {
	case err != nil:
		return "", fmt.Errorf("member: trying the new token: %w", err)
	case user != s.result.User:
		return "", fmt.Errorf("member: the new token is that of %s, not of %s", user, s.result.User)
	}
	return token, nil
}

// reusable reports whether the token in the Secret need not be replaced.
func (s *session) reusable(ctx context.Context, secret *corev1.Secret) bool {
	token := string(secret.Data[corev1.ServiceAccountTokenKey])
	c, err := claimsOf(token)
	if err != nil || c.due(time.Now()) || subjectPrefix+c.account().Namespace+":"+c.account().Name != s.result.User ||
		secret.Annotations[AnnotationTokenLifetime] != s.o.TokenLifetime.String() {
		return false
	}
	user, err := reviewToken(ctx, s.member.config, token)
	return err == nil && user == s.result.User
}

// chooseAccess sets the access provider and the user.
func (s *session) chooseAccess(ctx context.Context) error {
	s.result.Access = AccessTokenSecret
	s.result.User = subjectPrefix + s.o.MemberNamespace + ":" + s.objectName()
	if s.o.Access == AccessTokenSecret || s.o.ServiceAccount.Name == "" {
		return nil
	}
	user, err := s.tryOIDC(ctx)
	switch {
	case errors.Is(err, ErrNotTrusted) && s.o.Access == AccessAuto:
		s.warn("%v: controllers get a stored token", err)
		return nil
	case err != nil:
		return err
	}
	s.result.Access, s.result.User, s.user = AccessOIDC, user, user
	if server, err := url.Parse(s.o.Server); err == nil && s.o.Audience != ownAudience(server) {
		s.warn("the audience is not the URL of the server: the plugin oidc needs --allowed-audience=%s=%s", s.o.Audience, ownAudience(server))
	}
	return nil
}

// tryOIDC returns the user that the member derives from a token of the hub.
func (s *session) tryOIDC(ctx context.Context) (string, error) {
	own, err := s.hub.requestToken(ctx, s.o.ServiceAccount, MinTokenLifetime)
	if err != nil {
		return "", err
	}
	for _, audience := range own.Spec.Audiences {
		if audience == s.o.Audience {
			return "", invalid("audience %q is one of the hub's own API server: give the member one of its own", audience)
		}
	}
	request, err := s.hub.requestToken(ctx, s.o.ServiceAccount, MinTokenLifetime, s.o.Audience)
	if err != nil {
		return "", err
	}
	user, err := reviewToken(ctx, s.member.config, request.Status.Token)
	subject := subjectPrefix + s.o.ServiceAccount.Namespace + ":" + s.o.ServiceAccount.Name
	switch {
	case apierrors.IsUnauthorized(err):
		return "", ErrNotTrusted
	case err != nil:
		return "", fmt.Errorf("member: trying a token of the hub: %w", err)
	case user == subject:
		// Tokens of the member's own ServiceAccount of that name have this user, too.
		return "", fmt.Errorf("the member maps tokens of the hub to users without a prefix, which could be its own: configure one")
	case !strings.HasSuffix(user, subject):
		return "", fmt.Errorf("the member maps tokens of the hub to the user %q, which does not end in %s: map the claim sub", user, subject)
	}
	return user, nil
}
