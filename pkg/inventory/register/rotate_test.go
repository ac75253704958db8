// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory/register"
)

func rotateOptions(o register.Options) register.RotateOptions {
	return register.RotateOptions{Hub: o.Hub, Namespace: o.Namespace, SecretNamespace: o.SecretNamespace}
}

func TestRotate(t *testing.T) {
	g := NewWithT(t)
	o := options(t, east)
	mustRegister(t, o)
	before := secretOf(t, o)
	r := rotateOptions(o)

	// Not due yet.
	results, err := register.Rotate(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results).To(HaveLen(1))
	g.Expect(results[0].Name).To(Equal("c1"))
	g.Expect(results[0].Rotation).To(Equal(register.Kept))
	g.Expect(results[0].Expires.Time).To(BeTemporally("~", time.Now().Add(register.DefaultTokenLifetime), time.Minute))

	// All that would be renewed, and then all.
	r.OlderThan, r.DryRun = ptr.To(time.Duration(0)), true
	results, err = register.Rotate(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results[0].Rotation).To(Equal(register.Renewed))
	g.Expect(secretOf(t, o).ResourceVersion).To(Equal(before.ResourceVersion))
	r.DryRun = false
	time.Sleep(time.Second) // tokens of the same second could be equal
	results, err = register.Rotate(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results[0].Rotation).To(Equal(register.Renewed))

	after := secretOf(t, o)
	g.Expect(after.Data["token"]).NotTo(Equal(before.Data["token"]))
	g.Expect(allowed(t, east, string(after.Data["token"]))).To(Equal(200))
	after.Data["token"] = before.Data["token"]
	g.Expect(after.Data).To(Equal(before.Data))
	g.Expect(after.Annotations).To(Equal(before.Annotations))
	g.Expect(mustRegister(t, o).Changes).To(Satisfy(haveActions(register.Unchanged)))
}

func TestRotateFailures(t *testing.T) {
	g := NewWithT(t)
	o := options(t, east)
	mustRegister(t, o)
	o.Name, o.Member = "c2", west.Config
	mustRegister(t, o)

	// The server of one does not exist.
	broken := secretOf(t, o)
	broken.Annotations[register.AnnotationServer] = "https://127.0.0.1:1"
	g.Expect(hub.Client.Update(t.Context(), broken)).To(Succeed())

	r := rotateOptions(o)
	r.OlderThan = ptr.To(time.Duration(0))
	var mu sync.Mutex
	var seen []string
	r.OnRotated = func(result register.Rotated) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, result.Name)
	}
	results, err := register.Rotate(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results).To(HaveLen(2))
	g.Expect(results[0].Rotation).To(Equal(register.Renewed))
	g.Expect(results[1].Rotation).To(Equal(register.Failed))
	g.Expect(results[1].Error).To(And(ContainSubstring("connection refused"), Not(ContainSubstring(string(broken.Data["token"])))))
	g.Expect(secretOf(t, o).Data).To(Equal(broken.Data))
	g.Expect(seen).To(ConsistOf("c1", "c2"))

	redirect, redirectCA := redirecting(t)
	ca, token := west.Config.CAData, string(broken.Data["token"])
	for _, tt := range []struct {
		name, token, server string
		ca                  []byte
		want                string
	}{
		{"a redirect", token, redirect, redirectCA, "redirect"},
		{"an unencrypted server", token, "http://127.0.0.1:1", ca, "no https URL"},
		{"no token", "x", west.Config.Host, ca, "register the member again"},
		{"an expired token", expired(token), west.Config.Host, ca, "expired at 1970-01-01"},
		{"another server", token, east.Config.Host, ca, "certificate"},
		{"another cluster", token, east.Config.Host, east.Config.CAData, "does not accept the token"},
	} {
		secret := secretOf(t, o)
		secret.Data["token"], secret.Data["ca.crt"] = []byte(tt.token), tt.ca
		secret.Annotations[register.AnnotationServer] = tt.server
		g.Expect(hub.Client.Update(t.Context(), secret)).To(Succeed())
		r.Names = []string{"c2", "missing"}
		results, err := register.Rotate(t.Context(), r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(results[0].Error).To(ContainSubstring(tt.want), tt.name)
		g.Expect(results[0].Error).NotTo(ContainSubstring(tt.token+"."), tt.name)
		g.Expect(results[1].Error).To(ContainSubstring("not registered"))
		g.Expect(secretOf(t, o).Data["token"]).To(BeEquivalentTo(tt.token))
	}
}

// TestRotateRevoked rotates a token of a ServiceAccount that was deleted.
func TestRotateRevoked(t *testing.T) {
	g := NewWithT(t)
	o := options(t, east)
	mustRegister(t, o)
	account := &corev1.ServiceAccount{}
	g.Expect(east.Client.Get(t.Context(), client.ObjectKey{Namespace: o.MemberNamespace, Name: o.Namespace + ".c1"}, account)).To(Succeed())
	g.Expect(east.Client.Delete(t.Context(), account)).To(Succeed())
	r := rotateOptions(o)
	r.OlderThan = ptr.To(time.Duration(0))
	results, err := register.Rotate(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results[0].Error).To(ContainSubstring("register the member again"))

	mustRegister(t, o) // repairs it
	results, err = register.Rotate(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results[0].Rotation).To(Equal(register.Renewed))
}

// TestRotateConflict changes the Secret after it was read.
func TestRotateConflict(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(secret *corev1.Secret, other string)
		want   register.Rotation
	}{
		{"another token was stored", func(secret *corev1.Secret, other string) { secret.Data["token"] = []byte(other) }, register.Kept},
		{"a label was set", func(secret *corev1.Secret, _ string) { secret.Labels["x"] = "y" }, register.Renewed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			o := options(t, east)
			mustRegister(t, o)
			other := options(t, east)
			mustRegister(t, other)
			before, otherToken := secretOf(t, o), string(secretOf(t, other).Data["token"])
			var once sync.Once
			r := rotateOptions(o)
			r.Hub = rest.CopyConfig(o.Hub)
			r.Hub.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(request *http.Request) (*http.Response, error) {
					if request.Method == http.MethodPut {
						once.Do(func() {
							secret := secretOf(t, o)
							tt.change(secret, otherToken)
							g.Expect(hub.Client.Update(t.Context(), secret)).To(Succeed())
						})
					}
					return next.RoundTrip(request)
				})
			})
			r.OlderThan = ptr.To(time.Duration(0))
			time.Sleep(time.Second) // tokens of the same second could be equal
			results, err := register.Rotate(t.Context(), r)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(results[0].Rotation).To(Equal(tt.want))
			token := string(secretOf(t, o).Data["token"])
			g.Expect(token == otherToken).To(Equal(tt.want == register.Kept))
			g.Expect(token).NotTo(BeEquivalentTo(before.Data["token"]))
			if tt.want == register.Renewed {
				g.Expect(secretOf(t, o).Labels).To(HaveKeyWithValue("x", "y"))
			}
		})
	}
}

// TestRotateInterrupted ends Rotate before each request that writes something.
func TestRotateInterrupted(t *testing.T) {
	g := NewWithT(t)
	o := options(t, east)
	mustRegister(t, o)
	before := secretOf(t, o)
	var left atomic.Int32
	r := rotateOptions(o)
	r.Hub, r.OlderThan = failAfter(o.Hub, &left), ptr.To(time.Duration(0))
	results, err := register.Rotate(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results[0].Error).To(ContainSubstring(errInjected.Error()))
	g.Expect(secretOf(t, o).Data).To(Equal(before.Data))
	g.Expect(allowed(t, east, string(before.Data["token"]))).To(Equal(200))
}

// TestCronJob applies the manifest, and rotates with the token of its ServiceAccount.
func TestCronJob(t *testing.T) {
	for name, names := range map[string][]string{"all": nil, "one": {"c1"}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := options(t, east)
			mustRegister(t, o)
			manifest, err := register.CronJob(register.CronJobOptions{Namespace: o.Namespace, Names: names, Image: "example.com/mc-credential:v1"})
			g.Expect(err).NotTo(HaveOccurred())
			for _, object := range manifest {
				g.Expect(hub.Client.Create(t.Context(), object)).To(Succeed())
			}
			token, err := hub.IssueToken(t.Context(), manifest[0].(*corev1.ServiceAccount), nil)
			g.Expect(err).NotTo(HaveOccurred())
			r := rotateOptions(o)
			r.Names, r.OlderThan = names, ptr.To(time.Duration(0))
			r.Hub = rest.AnonymousClientConfig(o.Hub)
			r.Hub.BearerToken = token
			results, err := register.Rotate(t.Context(), r)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(results).To(ConsistOf(HaveField("Rotation", register.Renewed)))

			// And nothing more.
			limited, err := client.New(r.Hub, client.Options{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(limited.Delete(t.Context(), secretOf(t, o))).To(MatchError(ContainSubstring("forbidden")))
			if names != nil {
				g.Expect(limited.List(t.Context(), &corev1.SecretList{}, client.InNamespace(o.Namespace))).To(MatchError(ContainSubstring("forbidden")))
			}
			args := manifest[3].(*batchv1.CronJob).Spec.JobTemplate.Spec.Template.Spec.Containers[0].Args
			g.Expect(strings.Join(args, " ")).To(HavePrefix("rotate --namespace=" + o.Namespace))
		})
	}
}

func TestCronJobRefuses(t *testing.T) {
	valid := register.CronJobOptions{Namespace: "fleet", Image: "x"}
	for text, change := range map[string]func(*register.CronJobOptions){
		`image ""`:     func(o *register.CronJobOptions) { o.Image = "" },
		`schedule "x"`: func(o *register.CronJobOptions) { o.Schedule = "x" },
		`name "A"`:     func(o *register.CronJobOptions) { o.Name = "A" },
		`name "B"`:     func(o *register.CronJobOptions) { o.Names = []string{"B"} },
		`namespace ""`: func(o *register.CronJobOptions) { o.Namespace = "" },
	} {
		o := valid
		change(&o)
		_, err := register.CronJob(o)
		NewWithT(t).Expect(err).To(And(MatchError(register.ErrInvalidOptions), MatchError(ContainSubstring(text))))
	}
}
