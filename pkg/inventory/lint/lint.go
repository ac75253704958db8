// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Severity is how much a finding matters.
type Severity string

const (
	// Error means that consumers cannot use something, or use it wrongly.
	Error Severity = "error"

	// Warning means that some consumers, or a later version of the API, may.
	Warning Severity = "warning"

	// Info is something to know.
	Info Severity = "info"
)

// Rule is the kind of a finding.
type Rule string

const (
	// DuplicateCluster: several profiles stand for one cluster. It is Info if they are
	// correlated by a member ID, or else a Warning.
	DuplicateCluster Rule = "DuplicateCluster"

	// ConflictingIdentity: profiles with one member ID have different cluster IDs.
	ConflictingIdentity Rule = "ConflictingIdentity"

	// MissingMemberID: the profile has no member ID.
	MissingMemberID Rule = "MissingMemberID"

	// NoProvider: the profile lists no access provider that is served.
	NoProvider Rule = "NoProvider"

	// DanglingDecision: a decision names a profile that does not exist.
	DanglingDecision Rule = "DanglingDecision"

	// RejectedByV1alpha2: the API server would reject the profile in v1alpha2.
	RejectedByV1alpha2 Rule = "RejectedByV1alpha2"

	// DroppedByV1alpha2: the profile has a field that v1alpha2 does not have.
	DroppedByV1alpha2 Rule = "DroppedByV1alpha2"

	// InvalidProfile: the profile violates the API otherwise; see
	// inventory.Validate.
	InvalidProfile Rule = "InvalidProfile"
)

// Finding is something wrong with an object. The names of the fields in JSON, rules
// and severities are stable.
type Finding struct {
	Severity Severity `json:"severity"`
	Rule     Rule     `json:"rule"`

	// Kind is ClusterProfile or PlacementDecision, and Objects are one or more,
	// each as "namespace/name".
	Kind    string   `json:"kind"`
	Objects []string `json:"objects"`

	// Message is what is wrong, and Remedy what to do.
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// String returns the finding as one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s %s: %s", f.Severity, f.Kind, strings.Join(f.Objects, ", "), f.Message)
}

// Options configure Profiles.
type Options struct {
	// Providers are the names of the access providers that consumers know, as in
	// their provider file. Default: nil, and NoProvider is not looked for.
	Providers []string

	// Namespaces are those whose profiles were read: a decision about a profile in
	// another one is no finding. Default: all.
	Namespaces []string
}

// Profiles returns what is wrong with the profiles of a hub, or of some of its
// namespaces, and with the decisions about them: errors first, then by rule and object.
func Profiles(profiles []*inventory.Profile, decisions []*v1alpha1.PlacementDecision, options Options) []Finding {
	l := &linter{options: options}
	for _, profile := range profiles {
		l.profile(profile)
	}
	l.identities(profiles)
	l.decisions(profiles, decisions)
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Rule, b.Rule), slices.Compare(a.Objects, b.Objects))
	})
	return l.findings
}

func rank(s Severity) int { return slices.Index([]Severity{Error, Warning, Info}, s) }

// linter collects findings.
type linter struct {
	options  Options
	findings []Finding
}

const (
	profileKind  = v1alpha1.ClusterProfileKind
	decisionKind = "PlacementDecision"
)

func (l *linter) add(severity Severity, rule Rule, remedy string, profiles []*inventory.Profile, format string, args ...any) {
	f := Finding{Severity: severity, Rule: rule, Kind: profileKind, Message: fmt.Sprintf(format, args...), Remedy: remedy}
	for _, profile := range profiles {
		f.Objects = append(f.Objects, inventory.KeyOf(profile).String())
	}
	slices.Sort(f.Objects)
	l.findings = append(l.findings, f)
}

// profile looks at a profile alone.
func (l *linter) profile(profile *inventory.Profile) {
	one := []*inventory.Profile{profile}
	if inventory.MemberID(profile) == "" {
		l.add(Warning, MissingMemberID, "set the label in the cluster manager, to the same value on all profiles of the cluster",
			one, "it has no label %s, so that consumers cannot tell whether other profiles are of the same cluster", inventory.LabelMemberID)
	}
	l.provider(profile)
	named := map[string]bool{}
	for _, fault := range V1alpha2Faults(profile) {
		named[fault.Field] = true
		l.add(Error, RejectedByV1alpha2, "correct it in the cluster manager, which cannot write such a profile in v1alpha2",
			one, "%s: %s", fault.Field, fault.Message)
	}
	for _, field := range dropped(profile) {
		named[field.path] = true
		l.add(Warning, DroppedByV1alpha2, field.remedy, one, "%s: v1alpha2 does not have this field", field.path)
	}
	for _, fault := range fieldErrors(inventory.Validate(profile)) {
		if !named[fault.Field] {
			l.add(Warning, InvalidProfile, "correct it in the cluster manager", one, "%s: %s", fault.Field, fault.Message)
		}
	}
}

// provider looks for access providers that consumers know.
func (l *linter) provider(profile *inventory.Profile) {
	if l.options.Providers == nil {
		return
	}
	var names []string
	for _, offered := range inventory.AccessProviders(profile) {
		if slices.Contains(l.options.Providers, offered.Name) {
			return
		}
		names = append(names, fmt.Sprintf("%q", offered.Name))
	}
	one := []*inventory.Profile{profile}
	remedy := "add an entry for one of them to the provider file"
	if len(names) == 0 {
		l.add(Error, NoProvider, "have the cluster manager list an access provider", one, "it lists no access provider")
		return
	}
	l.add(Error, NoProvider, remedy, one, "no provider serves it: it lists %s", strings.Join(names, ", "))
}

// decisions looks for profiles that do not exist.
func (l *linter) decisions(profiles []*inventory.Profile, decisions []*v1alpha1.PlacementDecision) {
	exists := make(map[inventory.Key]bool, len(profiles))
	for _, profile := range profiles {
		exists[inventory.KeyOf(profile)] = true
	}
	for _, decision := range decisions {
		for _, selected := range decision.Decisions {
			ref := selected.ClusterProfileRef
			key := inventory.Key{Namespace: cmp.Or(ref.Namespace, decision.Namespace), Name: ref.Name}
			if exists[key] || len(l.options.Namespaces) > 0 && !slices.Contains(l.options.Namespaces, key.Namespace) {
				continue
			}
			l.findings = append(l.findings, Finding{
				Severity: Error, Rule: DanglingDecision, Kind: decisionKind, Objects: []string{decision.Namespace + "/" + decision.Name},
				Message: fmt.Sprintf("it names the profile %s, which does not exist", key),
				Remedy:  "check the scheduler: it has selected a cluster that has left the inventory, or of another namespace",
			})
		}
	}
}
