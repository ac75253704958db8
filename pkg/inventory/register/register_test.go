// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/register"
)

func eachItem(t *testing.T, list client.ObjectList, f func(client.Object)) {
	t.Helper()
	err := meta.EachListItem(list, func(item runtime.Object) error {
		f(item.(client.Object))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRegister(t *testing.T) {
	g := NewWithT(t)
	o := options(t, east)
	o.Labels = map[string]string{"env": "prod"}
	result := mustRegister(t, o)
	g.Expect(result.Changes).To(HaveLen(8))
	g.Expect(result.Changes).To(Satisfy(haveActions(register.Created)))
	g.Expect(result.Access).To(Equal(register.AccessTokenSecret))

	profile := profileOf(t, o)
	g.Expect(inventory.Validate(profile)).To(Succeed())
	g.Expect(profile.Labels).To(HaveKeyWithValue("x-k8s.io/cluster-manager", register.Manager))
	g.Expect(profile.Labels).To(HaveKeyWithValue("env", "prod"))
	g.Expect(inventory.MemberID(profile)).To(Equal(inventory.ClusterID(profile)))
	g.Expect(inventory.HealthOf(profile).Status).To(Equal(inventory.Healthy))
	g.Expect(profile.Status.Version.Kubernetes).NotTo(BeEmpty())

	secret := secretOf(t, o)
	token := string(secret.Data["token"])
	g.Expect(secret.Annotations).To(HaveKeyWithValue(register.AnnotationServer, strings.TrimRight(east.Config.Host, "/")))
	g.Expect(allowed(t, east, token)).To(Equal(200))

	// Again: nothing changes, and the token stays.
	again := mustRegister(t, o)
	g.Expect(again.Changes).To(Satisfy(haveActions(register.Unchanged)))
	g.Expect(profileOf(t, o).ResourceVersion).To(Equal(profile.ResourceVersion))
	g.Expect(secretOf(t, o).Data["token"]).To(BeEquivalentTo(token))

	// With other rules and a lifetime, only these change.
	o.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
	o.TokenLifetime = time.Hour
	var updated []string
	for _, change := range mustRegister(t, o).Changes {
		if change.Action != register.Unchanged {
			updated = append(updated, change.Kind+" "+string(change.Action))
		}
	}
	g.Expect(updated).To(Equal([]string{"ClusterRole updated", "Secret updated"}))
	g.Expect(allowed(t, east, string(secretOf(t, o).Data["token"]))).To(Equal(403))
}

func TestDryRun(t *testing.T) {
	g := NewWithT(t)
	o := options(t, east)
	o.DryRun = true
	g.Expect(mustRegister(t, o).Changes).To(Satisfy(haveActions(register.Created)))
	g.Expect(objects(t, o)).To(BeEmpty())

	o.DryRun = false
	mustRegister(t, o)
	before := secretOf(t, o)
	o.DryRun = true
	g.Expect(mustRegister(t, o).Changes).To(Satisfy(haveActions(register.Unchanged)))
	o.TokenLifetime = time.Hour
	g.Expect(mustRegister(t, o).Changes).To(ContainElement(HaveField("Action", register.Updated)))
	g.Expect(secretOf(t, o).ResourceVersion).To(Equal(before.ResourceVersion))
	g.Expect(secretOf(t, o).Data["token"]).To(Equal(before.Data["token"]))
}

// TestInterrupted ends Register before each of its requests that write something. It
// can be called again, or undone.
func TestInterrupted(t *testing.T) {
	g := NewWithT(t)
	complete := options(t, east)
	want := len(mustRegister(t, complete).Changes)
	steps := int32(0)
	for ; ; steps++ {
		o := options(t, east)
		var left atomic.Int32
		left.Store(steps)
		interrupted := o
		interrupted.Hub, interrupted.Member = failAfter(o.Hub, &left), failAfter(o.Member, &left)
		result, err := register.Register(t.Context(), interrupted)
		if err == nil {
			break
		}
		g.Expect(err).To(MatchError(errInjected))
		g.Expect(len(result.Changes)).To(BeNumerically("<", want))

		// No profile has access before everything else is there.
		profile := &inventory.Profile{}
		if hub.Client.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, profile) == nil {
			g.Expect(profile.Status.AccessProviders).To(BeEmpty())
			g.Expect(allowed(t, east, string(secretOf(t, o).Data["token"]))).To(Equal(200))
		}
		if steps%2 == 0 {
			g.Expect(mustRegister(t, o).Changes).To(HaveLen(want))
			g.Expect(profileOf(t, o).Status.AccessProviders).To(HaveLen(1))
			g.Expect(objects(t, o)).To(HaveLen(len(objects(t, complete))))
			g.Expect(allowed(t, east, string(secretOf(t, o).Data["token"]))).To(Equal(200))
		}
		_, err = register.Unregister(t.Context(), unregister(o))
		if steps > 1 { // something was created that can be found
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(objects(t, o)).To(BeEmpty())
	}
	g.Expect(steps).To(BeNumerically(">=", 8))
}

func unregister(o register.Options) register.UnregisterOptions {
	return register.UnregisterOptions{Hub: o.Hub, Member: o.Member, Namespace: o.Namespace, Name: o.Name, SecretNamespace: o.SecretNamespace}
}

func TestRegisterRefuses(t *testing.T) {
	planes(t)
	tests := []struct {
		name    string
		prepare func(g Gomega, o *register.Options)
		want    error
		text    string
	}{
		{"a namespace of the hub that does not exist", func(_ Gomega, o *register.Options) { o.Namespace = "missing" }, nil, "namespace missing does not exist"},
		{"a namespace for Secrets that does not exist", func(_ Gomega, o *register.Options) { o.SecretNamespace = "missing" }, nil, "namespace missing, for the Secret"},
		{"a profile of another manager", func(g Gomega, o *register.Options) {
			profile := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
			profile.Spec.ClusterManager.Name = "other"
			g.Expect(hub.Client.Create(t.Context(), profile)).To(Succeed())
		}, register.ErrNotOwned, `the cluster manager "other"`},
		{"a profile with the manager's name that it did not create", func(g Gomega, o *register.Options) {
			profile := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
			profile.Spec.ClusterManager.Name = register.Manager
			g.Expect(hub.Client.Create(t.Context(), profile)).To(Succeed())
		}, register.ErrNotOwned, ""},
		{"a Secret that it did not create", func(g Gomega, o *register.Options) {
			g.Expect(hub.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Namespace + ".c1"}})).To(Succeed())
		}, register.ErrNotOwned, "was not created by mc-credential"},
		{"a ServiceAccount that it did not create", func(g Gomega, o *register.Options) {
			g.Expect(east.Create(t.Context(),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.MemberNamespace}},
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: o.MemberNamespace, Name: o.Namespace + ".c1"}},
			)).To(Succeed())
		}, register.ErrNotOwned, "ServiceAccount"},
		{"the ServiceAccount of another registration", func(g Gomega, o *register.Options) {
			mustRegister(t, *o)
			profile := profileOf(t, *o)
			g.Expect(hub.Client.Delete(t.Context(), profile)).To(Succeed())
			role := &rbacv1.ClusterRole{}
			g.Expect(east.Client.Get(t.Context(), client.ObjectKey{Name: o.Namespace + ":" + o.Namespace + ".c1"}, role)).To(Succeed())
			role.Labels[register.LabelRegistration] = "other"
			g.Expect(east.Client.Update(t.Context(), role)).To(Succeed())
		}, register.ErrNotOwned, "in another hub or inventory"},
		{"rules that the API server refuses", func(_ Gomega, o *register.Options) {
			o.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, NonResourceURLs: []string{"/x"}, Verbs: []string{"get"}}}
		}, nil, "Invalid value"},
		{"a member that is registered under another name", func(_ Gomega, o *register.Options) {
			first := *o
			first.Name = "first"
			mustRegister(t, first)
		}, register.ErrOtherCluster, "as first"},
		{"a name of another cluster", func(_ Gomega, o *register.Options) {
			first := *o
			first.Member = west.Config
			mustRegister(t, first)
		}, register.ErrOtherCluster, "replace it"},
		{"an unverified server", func(_ Gomega, o *register.Options) {
			o.Member = rest.CopyConfig(o.Member)
			o.Member.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
		}, register.ErrInvalidOptions, "certificate authority"},
		{"a server without https", func(_ Gomega, o *register.Options) { o.Server = "http://x" }, register.ErrInvalidOptions, "https URL"},
		{"a name that is none", func(_ Gomega, o *register.Options) { o.Name = "A" }, register.ErrInvalidOptions, `name "A"`},
		{"no rules", func(_ Gomega, o *register.Options) { o.Rules = nil }, register.ErrInvalidOptions, "rules"},
		{"a short lifetime", func(_ Gomega, o *register.Options) { o.TokenLifetime = time.Minute }, register.ErrInvalidOptions, "10m0s"},
		{"a label that is none", func(_ Gomega, o *register.Options) { o.Labels = map[string]string{"a b": ""} }, nil, "a b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			o := options(t, east)
			tt.prepare(g, &o)
			before := objects(t, o)
			result, err := register.Register(t.Context(), o)
			g.Expect(err).To(MatchError(ContainSubstring(tt.text)))
			if tt.want != nil {
				g.Expect(err).To(MatchError(tt.want))
			}
			if result != nil {
				g.Expect(result.Changes).To(BeEmpty())
			}
			g.Expect(objects(t, o)).To(ConsistOf(before))
		})
	}
}

func TestReplace(t *testing.T) {
	g := NewWithT(t)
	o := options(t, west)
	o.SecretNamespace = realfleet.TokenNamespace
	mustRegister(t, o)
	before := profileOf(t, o)
	o.Member, o.Replace, o.SecretNamespace = east.Config, true, ""
	mustRegister(t, o)
	g.Expect(objects(t, o)).To(HaveLen(6 + 5)) // what is in the first member stays
	profile := profileOf(t, o)
	g.Expect(profile.UID).NotTo(Equal(before.UID))
	g.Expect(inventory.MemberID(profile)).NotTo(Equal(inventory.MemberID(before)))
	g.Expect(allowed(t, east, string(secretOf(t, o).Data["token"]))).To(Equal(200))
}

func TestOtherMember(t *testing.T) {
	g := NewWithT(t)
	o := options(t, east)
	profile := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: "theirs",
		Labels: map[string]string{inventory.LabelMemberID: mustRegister(t, options(t, east)).MemberID},
	}}
	profile.Spec.ClusterManager.Name = "other"
	g.Expect(hub.Client.Create(t.Context(), profile)).To(Succeed())
	g.Expect(mustRegister(t, o).Warnings).To(ContainElement(ContainSubstring("theirs")))
}

func TestChangedOptions(t *testing.T) {
	g := NewWithT(t)
	o := options(t, east)
	mustRegister(t, o)
	o.MemberNamespace += "-next"
	g.Expect(hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace + "-secrets"}})).To(Succeed())
	o.SecretNamespace = o.Namespace + "-secrets"
	result := mustRegister(t, o)
	var deleted []string
	for _, change := range result.Changes {
		if change.Action == register.Deleted {
			deleted = append(deleted, change.Cluster+" "+change.Kind)
		}
	}
	g.Expect(deleted).To(ConsistOf("hub Secret", "member Namespace", "member ServiceAccount", "member Role", "member RoleBinding",
		"member ClusterRole", "member ClusterRoleBinding"))
	g.Expect(objects(t, o)).To(HaveLen(6))
	g.Expect(allowed(t, east, string(secretOf(t, o).Data["token"]))).To(Equal(200))
}
