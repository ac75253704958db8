// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// reviewScheme has the reviews only: all types would make programs large.
var reviewScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{authenticationv1.AddToScheme, authorizationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // cannot be
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // metav1.Status
	return scheme
}()

// client creates reviews with the credential.
type client struct{ rest rest.Interface }

func newClient(access *credentials.Access) (*client, error) {
	config := access.RESTConfig()
	config.NegotiatedSerializer = serializer.NewCodecFactory(reviewScheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.GroupVersion = &schema.GroupVersion{}
	config.UserAgent = "rollcall-check"
	c, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &client{rest: c}, nil
}

// create creates a review of the resource, such as
// "authentication.k8s.io/v1/selfsubjectreviews", and reads the answer into it.
func create[T any, R interface {
	*T
	runtime.Object
}](ctx context.Context, c *client, resource string, review R) error {
	type result struct {
		answer R
		err    error
	}
	done := make(chan result, 1)
	// Some transports of configurations, such as with a plugin that client-go runs,
	// do not end with the context. Then this goroutine outlives the check.
	go func() {
		answer := review.DeepCopyObject().(R)
		err := c.rest.Post().AbsPath("/apis/" + resource).MaxRetries(0).Body(answer).Do(ctx).Into(answer)
		done <- result{answer, err}
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case r = <-done:
		case <-timer.C:
			return ctx.Err()
		}
	}
	if r.err == nil {
		*review = *r.answer
	}
	return r.err
}

// grace is how long a request may take to return after its context has ended.
const grace = 500 * time.Millisecond

// identity is the step Identity. It reports whether reviews of permissions make sense.
func (r *run) identity(client *client) bool {
	start := time.Now()
	review := &authenticationv1.SelfSubjectReview{}
	review.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"))
	err := create(r.ctx, client, "authentication.k8s.io/v1/selfsubjectreviews", review)
	o := identityOutcome(r.ctx, err, r.limit)
	user := review.Status.UserInfo
	switch {
	case err == nil && user.Username == "":
		o = failed(NotKubernetes, "the response is not a SelfSubjectReview")
	case err == nil:
		r.report.User = newUser(user)
		o = succeeded(r.report.User.Name + ", groups " + strings.Join(r.report.User.Groups, ", "))
		if isAnonymous(user) && r.report.Credential != nil && r.report.Credential.Kind != credentials.KindNone {
			o = failed(Anonymous, "the cluster takes the request for an anonymous one")
		}
	}
	if r.parent.Err() != nil {
		o = canceled(o)
	}
	r.report.set(StepIdentity, o.since(start))
	return o.status != Failed
}

// newUser returns the user without secrets: a server could return what it was sent.
func newUser(info authenticationv1.UserInfo) *User {
	user := &User{Name: printable(info.Username), UID: printable(info.UID)}
	for _, group := range info.Groups {
		user.Groups = append(user.Groups, printable(group))
	}
	return user
}

func isAnonymous(user authenticationv1.UserInfo) bool {
	return user.Username == "system:anonymous" || slices.Contains(user.Groups, "system:unauthenticated")
}

// identityOutcome is the outcome for an error.
func identityOutcome(ctx context.Context, err error, limit time.Duration) outcome {
	var status apierrors.APIStatus
	var unsent *url.Error // from the transport
	switch {
	case err == nil:
		return outcome{}
	case ctx.Err() != nil:
		return failed(NoResponse, fmt.Sprintf("no response to a SelfSubjectReview within %s", limit))
	case apierrors.IsUnauthorized(err):
		return failed(Unauthorized, "the cluster refuses the credential (401)")
	case apierrors.IsForbidden(err):
		return skipped("the user may not create a SelfSubjectReview: " + err.Error())
	case apierrors.IsNotFound(err) && isStatusOfKubernetes(err):
		return skipped("the cluster does not serve SelfSubjectReview, which came with Kubernetes 1.28")
	case apierrors.IsNotFound(err), !errors.As(err, &status) && !errors.As(err, &unsent):
		return failed(NotKubernetes, "the response to a SelfSubjectReview is not one of Kubernetes")
	}
	return failed(ReviewFailed, withoutProfile(err))
}

// isStatusOfKubernetes reports whether the error is a metav1.Status that the server
// has sent, and not one that client-go has made of another response.
func isStatusOfKubernetes(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || !slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}
