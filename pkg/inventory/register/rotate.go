// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RotateOptions are what Rotate needs.
type RotateOptions struct {
	// Hub is the configuration for the hub, and Namespace is that of the profiles.
	// Required.
	Hub       *rest.Config
	Namespace string

	// Names of the profiles. Defaults to all registered ones of the namespace with a
	// Secret.
	Names []string

	// SecretNamespace is that of the Secrets. Defaults to Namespace.
	SecretNamespace string

	// OlderThan renews tokens that were issued longer ago; 0 renews all. Defaults to
	// those of which less than a third of the lifetime is left.
	OlderThan *time.Duration

	// Parallel is how many members are worked on at the same time. Defaults to 10.
	Parallel int

	// Timeout limits the work on one member. Defaults to 30 s.
	Timeout time.Duration

	// DryRun reports which tokens would be renewed.
	DryRun bool

	// OnRotated receives each result at once. Calls are concurrent. Defaults to
	// nothing.
	OnRotated func(Rotated)
}

// Rotation is what was done with a token.
type Rotation string

// The results for a token.
const (
	// Renewed tokens are new; the one before stays valid until it expires.
	Renewed Rotation = "renewed"

	// Kept tokens need not be renewed yet.
	Kept Rotation = "kept"

	// Failed tokens were to be renewed. What is in the Secret was not changed.
	Failed Rotation = "failed"
)

// Rotated is the result for one member.
type Rotated struct {
	Name     string       `json:"name"`
	Rotation Rotation     `json:"result"`
	Expires  *metav1.Time `json:"expires,omitempty"` // of the token that the Secret now has
	Error    string       `json:"error,omitempty"`
}

// Rotate renews the tokens of registered members. Each token requests the next one, so
// that no other credential of the member is needed. A token that has expired cannot:
// Register stores a new one.
//
// A new token is stored only if the member accepts it, and never over one that another
// process has stored meanwhile. The failure of one member does not affect others; the
// results have the errors. The error returned is one that affects all.
func Rotate(ctx context.Context, o RotateOptions) ([]Rotated, error) {
	o.SecretNamespace = cmp.Or(o.SecretNamespace, o.Namespace)
	o.Parallel = cmp.Or(max(o.Parallel, 0), 10)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	if o.Hub == nil {
		return nil, invalid("the configuration of the hub is required")
	}
	for _, name := range append([]string{"x"}, o.Names...) {
		if err := checkNames(o.Namespace, name, o.SecretNamespace); err != nil {
			return nil, err
		}
	}
	hub, err := connect(o.Hub, "hub")
	if err != nil {
		return nil, err
	}
	names := o.Names
	if len(names) == 0 {
		if names, err = registered(ctx, hub, o); err != nil {
			return nil, err
		}
	}
	results := make([]Rotated, len(names))
	var group errgroup.Group
	group.SetLimit(o.Parallel)
	for i, name := range names {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, o.Timeout)
			defer cancel()
			results[i] = rotate(ctx, hub, o, name)
			if o.OnRotated != nil {
				o.OnRotated(results[i])
			}
			return nil
		})
	}
	return results, errors.Join(group.Wait(), ctx.Err())
}

// registered returns the names of all members with a Secret.
func registered(ctx context.Context, hub *cluster, o RotateOptions) ([]string, error) {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := hub.List(ctx, secrets, client.InNamespace(o.SecretNamespace), client.MatchingLabels{LabelManagedBy: Manager, LabelInventory: o.Namespace})
	if err != nil {
		return nil, fmt.Errorf("hub: listing Secrets in %s: %w", o.SecretNamespace, err)
	}
	var names []string
	for i := range secrets.Items {
		name, found := strings.CutPrefix(secrets.Items[i].Name, objectName(o.Namespace, ""))
		if found && isName(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func rotate(ctx context.Context, hub *cluster, o RotateOptions, name string) Rotated {
	result := Rotated{Name: name}
	c, renewed, err := renew(ctx, hub, o, name)
	if c != (claims{}) {
		expires := metav1.NewTime(c.expires())
		result.Expires = &expires
	}
	switch {
	case err != nil:
		result.Rotation, result.Error = Failed, strings.ReplaceAll(err.Error(), "\n", "; ")
	case renewed:
		result.Rotation = Renewed
	default:
		result.Rotation = Kept
	}
	return result
}

// renew returns the claims of the token that the Secret has then.
func renew(ctx context.Context, hub *cluster, o RotateOptions, name string) (c claims, renewed bool, err error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.SecretNamespace, Name: objectName(o.Namespace, name)}}
	err = hub.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	switch {
	case apierrors.IsNotFound(err):
		return c, false, hub.wrap(secret, fmt.Errorf("%w with a token", ErrNotRegistered))
	case err != nil:
		return c, false, hub.wrap(secret, err)
	case secret.Labels[LabelManagedBy] != Manager || secret.Labels[LabelInventory] != o.Namespace:
		return c, false, hub.wrap(secret, fmt.Errorf("%w: it has no token of a registration", ErrNotOwned))
	}
	old := secret.Data[corev1.ServiceAccountTokenKey]
	if c, err = claimsOf(string(old)); err != nil {
		return c, false, hub.wrap(secret, fmt.Errorf("%w: register the member again", err))
	}
	now := time.Now()
	switch {
	case o.OlderThan == nil && !c.due(now), o.OlderThan != nil && now.Sub(time.Unix(c.IssuedAt, 0)) < *o.OlderThan:
		return c, false, nil
	case !now.Before(c.expires()):
		return c, false, hub.wrap(secret, fmt.Errorf("the token expired at %s: register the member again", c.expires().Format(time.RFC3339)))
	case o.DryRun:
		return c, true, nil
	}
	token, next, err := requestNext(ctx, secret, c)
	if err != nil {
		return c, false, hub.wrap(secret, redact(err, string(old)))
	}
	return store(ctx, hub, secret, old, token, next)
}

// requestNext requests the next token with the one in the Secret, and tries it.
func requestNext(ctx context.Context, secret *corev1.Secret, c claims) (token string, next claims, err error) {
	config := &rest.Config{
		Host: secret.Annotations[AnnotationServer], BearerToken: string(secret.Data[corev1.ServiceAccountTokenKey]), UserAgent: Manager,
		TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data[corev1.ServiceAccountRootCAKey]},
	}
	if !strings.HasPrefix(config.Host, "https://") {
		return "", next, fmt.Errorf("the annotation %s is no https URL: register the member again", AnnotationServer)
	}
	member, err := connect(config, "member")
	if err != nil {
		return "", next, err
	}
	lifetime, err := time.ParseDuration(secret.Annotations[AnnotationTokenLifetime])
	if err != nil || lifetime < MinTokenLifetime {
		lifetime = time.Duration(c.Expiry-c.IssuedAt) * time.Second
	}
	request, err := member.requestToken(ctx, c.account(), lifetime)
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsNotFound(err): // a deleted ServiceAccount; which depends on the API server's cache
		return "", next, errors.New("the member does not accept the token any more: register the member again")
	case err != nil:
		return "", next, err
	}
	token = request.Status.Token
	if next, err = claimsOf(token); err != nil {
		return "", next, fmt.Errorf("the member issued something else: %w", err)
	}
	user, err := reviewToken(ctx, config, token)
	switch {
	case err != nil:
		return "", next, fmt.Errorf("member: trying the new token: %w", err)
	case user != c.Subject || next.Subject != c.Subject:
		return "", next, fmt.Errorf("member: the new token is that of %s, not of %s", user, c.Subject)
	}
	return token, next, nil
}

// store writes the token into the Secret, unless that has another one by now.
func store(ctx context.Context, hub *cluster, secret *corev1.Secret, old []byte, token string, next claims) (claims, bool, error) {
	for {
		secret.Data[corev1.ServiceAccountTokenKey] = []byte(token)
		err := hub.Update(ctx, secret, client.FieldOwner(Manager))
		if err == nil {
			return next, true, nil
		}
		if !apierrors.IsConflict(err) {
			return claims{}, false, hub.wrap(secret, redact(err, token))
		}
		if err := hub.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return claims{}, false, hub.wrap(secret, err)
		}
		if current := secret.Data[corev1.ServiceAccountTokenKey]; !bytes.Equal(current, old) {
			other, err := claimsOf(string(current))
			return other, false, err
		}
	}
}
