// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Permission is one thing that a user may do or not.
type Permission struct {
	Verb string `json:"verb"`

	// Group and Resource are those of objects; the resource may have a subresource, as
	// "pods/log". Name is the name of the only object, if the rule is for one.
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource,omitempty"`
	Name     string `json:"name,omitempty"`

	// URL is a path that is no resource.
	URL string `json:"url,omitempty"`

	// Namespace is where the permission is needed, or "" for all.
	Namespace string `json:"namespace,omitempty"`
}

// String returns the permission in the form "get deployments.apps/web in namespace a".
func (p Permission) String() string {
	text := p.Verb + " " + p.URL
	if p.URL == "" {
		resource, sub, _ := strings.Cut(p.Resource, "/")
		text += resource
		if p.Group != "" {
			text += "." + p.Group
		}
		if sub != "" {
			text += "/" + sub
		}
	}
	if p.Name != "" {
		text += fmt.Sprintf(" %q", p.Name)
	}
	if p.Namespace != "" {
		text += " in namespace " + p.Namespace
	}
	return text
}

// permissionsOf returns what the rules grant, one by one.
func permissionsOf(rules []rbacv1.PolicyRule, namespaces []string) []Permission {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var all []Permission
	for _, namespace := range namespaces {
		for _, rule := range rules {
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, verb := range rule.Verbs {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, name := range names {
							all = append(all, Permission{Verb: verb, Group: group, Resource: resource, Name: name, Namespace: namespace})
						}
					}
				}
				for _, url := range rule.NonResourceURLs {
					all = append(all, Permission{Verb: verb, URL: url})
				}
			}
		}
	}
	seen := map[Permission]bool{}
	return slices.DeleteFunc(all, func(p Permission) bool {
		again := seen[p]
		seen[p] = true
		return again
	})
}

// maxReviews is how many reviews of access of one profile are under way at once.
const maxReviews = 8

// permissions is the step Permissions. A review of the rules has the answer for a
// namespace at once. In all namespaces, for paths, and where the answer is incomplete
// since an authorizer cannot list its rules, each permission is reviewed.
func (r *run) permissions(client *client) {
	if len(r.options.Rules) == 0 {
		r.report.set(StepPermissions, skipped("no rules are given"))
		return
	}
	start := time.Now()
	needed := permissionsOf(r.options.Rules, r.options.Namespaces)
	granted := make([]bool, len(needed))
	open, err := reviewRules(r.ctx, client, needed, granted)
	if err == nil {
		err = reviewAccess(r.ctx, client, needed, open, granted)
	}
	var o outcome
	switch {
	case err != nil && r.parent.Err() != nil:
		o = canceled(failed(Canceled, ""))
	case err != nil && r.ctx.Err() != nil:
		o = failed(NoResponse, fmt.Sprintf("no response to reviews of permissions within %s", r.limit))
	case err != nil:
		o = failed(ReviewFailed, err.Error())
	default:
		var names []string
		for i, p := range needed {
			if !granted[i] {
				r.report.MissingPermissions = append(r.report.MissingPermissions, p)
				names = append(names, p.String())
			}
		}
		o = permissionsOutcome(len(needed), names)
	}
	r.report.set(StepPermissions, o.since(start))
}

func permissionsOutcome(needed int, missing []string) outcome {
	const shown = 10
	if len(missing) == 0 {
		return succeeded(fmt.Sprintf("all %d", needed))
	}
	text := strings.Join(missing[:min(shown, len(missing))], "; ")
	if len(missing) > shown {
		text += fmt.Sprintf(" and %d more", len(missing)-shown)
	}
	return failed(PermissionsMissing, fmt.Sprintf("%d of %d are missing: %s", len(missing), needed, text))
}

// reviewRules sets which permissions are granted by the rules of their namespace. It
// returns those, by index, that are not decided.
func reviewRules(ctx context.Context, client *client, needed []Permission, granted []bool) (open []int, err error) {
	answers := map[string]*authorizationv1.SubjectRulesReviewStatus{}
	for i, p := range needed {
		if p.Namespace == "" {
			open = append(open, i)
			continue
		}
		answer, asked := answers[p.Namespace]
		if !asked {
			if answer, err = rulesIn(ctx, client, p.Namespace); err != nil {
				return nil, err
			}
			answers[p.Namespace] = answer
		}
		switch {
		case answer != nil && covers(answer, p):
			granted[i] = true
		case answer == nil || answer.Incomplete:
			open = append(open, i)
		}
	}
	return open, nil
}

// rulesIn returns the rules of the user in the namespace, or nil if the server has no
// answer.
func rulesIn(ctx context.Context, client *client, namespace string) (*authorizationv1.SubjectRulesReviewStatus, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"))
	if err := create(ctx, client, "authorization.k8s.io/v1/selfsubjectrulesreviews", review); err != nil {
		return nil, ctx.Err() // reviews of access may still work
	}
	return &review.Status, nil
}

// covers reports whether one of the rules grants the permission, which is one for a
// resource.
func covers(rules *authorizationv1.SubjectRulesReviewStatus, p Permission) bool {
	return slices.ContainsFunc(rules.ResourceRules, func(rule authorizationv1.ResourceRule) bool {
		return has(rule.Verbs, p.Verb) && has(rule.APIGroups, p.Group) && hasResource(rule.Resources, p.Resource) &&
			(len(rule.ResourceNames) == 0 || p.Name != "" && slices.Contains(rule.ResourceNames, p.Name))
	})
}

func has(list []string, text string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, text)
}

// hasResource also knows "*/scale", for the subresource of all resources.
func hasResource(list []string, resource string) bool {
	_, sub, found := strings.Cut(resource, "/")
	return has(list, resource) || found && slices.Contains(list, "*/"+sub)
}

// reviewAccess reviews the permissions with these indices.
func reviewAccess(ctx context.Context, client *client, needed []Permission, open []int, granted []bool) error {
	slots := make(chan struct{}, maxReviews)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var reviews sync.WaitGroup
	for _, i := range open {
		slots <- struct{}{}
		reviews.Go(func() {
			defer func() { <-slots }()
			allowed, err := isAllowed(ctx, client, needed[i])
			if err != nil {
				cancel(err)
			}
			granted[i] = allowed // an element for each goroutine
		})
	}
	reviews.Wait()
	return context.Cause(ctx)
}

func isAllowed(ctx context.Context, client *client, p Permission) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	review := &authorizationv1.SelfSubjectAccessReview{}
	review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
	if p.URL != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: p.URL, Verb: p.Verb}
	} else {
		resource, sub, _ := strings.Cut(p.Resource, "/")
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: p.Namespace, Verb: p.Verb, Group: p.Group, Resource: resource, Subresource: sub, Name: p.Name,
		}
	}
	err := create(ctx, client, "authorization.k8s.io/v1/selfsubjectaccessreviews", review)
	return review.Status.Allowed, err
}
