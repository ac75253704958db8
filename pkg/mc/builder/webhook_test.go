// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

const (
	mutatePod   = "/mutate--v1-pod"
	validatePod = "/validate--v1-pod"
)

type podWebhooks = mcbuilder.WebhookBuilder[*corev1.Pod]

// labelPod is a defaulter that labels pods with the cluster of the context.
type labelPod struct{}

func (labelPod) Default(ctx context.Context, pod *corev1.Pod) error {
	name, _ := mccontext.ClusterFrom(ctx)
	pod.Labels = map[string]string{"defaulted": "yes", "cluster": name.String()}
	return nil
}

// forbidPods is a validator that rejects pods.
type forbidPods struct{}

var errForbidden = errors.New("no pods here")

func (forbidPods) ValidateCreate(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return admission.Warnings{"beware"}, errForbidden
}

func (forbidPods) ValidateUpdate(context.Context, *corev1.Pod, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

func (forbidPods) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) {
	panic("as the test wants")
}

// anyPods is a custom defaulter and validator.
type anyPods struct {
	labelPod
	forbidPods
}

func (p anyPods) Default(ctx context.Context, obj runtime.Object) error {
	return p.labelPod.Default(ctx, obj.(*corev1.Pod))
}

func (p anyPods) ValidateCreate(ctx context.Context, obj runtime.Object) (admission.Warnings, error) {
	return p.forbidPods.ValidateCreate(ctx, obj.(*corev1.Pod))
}

func (p anyPods) ValidateUpdate(ctx context.Context, old, obj runtime.Object) (admission.Warnings, error) {
	return p.forbidPods.ValidateUpdate(ctx, old.(*corev1.Pod), obj.(*corev1.Pod))
}

func (p anyPods) ValidateDelete(ctx context.Context, obj runtime.Object) (admission.Warnings, error) {
	return p.forbidPods.ValidateDelete(ctx, obj.(*corev1.Pod))
}

func newWebhookManager(t *testing.T) mcmanager.Manager {
	t.Helper()
	mgr, err := mcmanager.New(&rest.Config{Host: "https://127.0.0.1:1"}, nil, mcmanager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// admit sends an admission request for a pod to the webhook server.
func admit(t *testing.T, mgr mcmanager.Manager, path string, operation admissionv1.Operation) *admissionv1.AdmissionResponse {
	t.Helper()
	pod, err := json.Marshal(&corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	review := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "uid", Operation: operation, Namespace: "default", Name: "a",
			Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Object:    runtime.RawExtension{Raw: pod},
			OldObject: runtime.RawExtension{Raw: pod},
		},
	}
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "https://eu.webhooks.example.com"+path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	mgr.GetWebhookServer().WebhookMux().ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		return nil
	}
	review = &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(answer.Body.Bytes(), review); err != nil {
		t.Fatalf("answer %q: %v", answer.Body, err)
	}
	return review.Response
}

func TestWebhooks(t *testing.T) {
	labelled := func(g Gomega, response *admissionv1.AdmissionResponse) {
		g.Expect(response.Allowed).To(BeTrue())
		g.Expect(string(response.Patch)).To(ContainSubstring(`"defaulted":"yes"`))
	}
	forbidden := func(g Gomega, response *admissionv1.AdmissionResponse) {
		g.Expect(response.Allowed).To(BeFalse())
		g.Expect(response.Result.Message).To(ContainSubstring(errForbidden.Error()))
		g.Expect(response.Warnings).To(ConsistOf("beware"))
	}
	for _, tc := range []struct {
		name      string
		build     func(*podWebhooks) *podWebhooks
		path      string
		operation admissionv1.Operation
		check     func(Gomega, *admissionv1.AdmissionResponse)
	}{
		{
			name:  "a defaulter changes objects",
			build: func(b *podWebhooks) *podWebhooks { return b.WithDefaulter(labelPod{}) },
			path:  mutatePod,
			check: labelled,
		},
		{
			name: "a defaulter with an option and a custom path",
			build: func(b *podWebhooks) *podWebhooks {
				return b.WithDefaulter(labelPod{}, admission.DefaulterRemoveUnknownOrOmitableFields).WithDefaulterCustomPath("/pods/label")
			},
			path:  "/pods/label",
			check: labelled,
		},
		{
			name:  "a validator rejects objects",
			build: func(b *podWebhooks) *podWebhooks { return b.WithValidator(forbidPods{}) },
			path:  validatePod,
			check: forbidden,
		},
		{
			name:      "a validator allows objects",
			build:     func(b *podWebhooks) *podWebhooks { return b.WithValidator(forbidPods{}) },
			path:      validatePod,
			operation: admissionv1.Update,
			check: func(g Gomega, response *admissionv1.AdmissionResponse) {
				g.Expect(response.Allowed).To(BeTrue())
			},
		},
		{
			name: "a validator with a custom path",
			build: func(b *podWebhooks) *podWebhooks {
				return b.WithValidator(forbidPods{}).WithValidatorCustomPath("/pods/forbid")
			},
			path:  "/pods/forbid",
			check: forbidden,
		},
		{
			name: "a custom defaulter",
			build: func(b *podWebhooks) *podWebhooks {
				return b.WithCustomDefaulter(anyPods{}) //nolint:staticcheck // kept for compatibility
			},
			path:  mutatePod,
			check: labelled,
		},
		{
			name: "a custom validator",
			build: func(b *podWebhooks) *podWebhooks {
				return b.WithCustomValidator(anyPods{}) //nolint:staticcheck // kept for compatibility
			},
			path:  validatePod,
			check: forbidden,
		},
		{
			name:      "RecoverPanic",
			build:     func(b *podWebhooks) *podWebhooks { return b.WithValidator(forbidPods{}).RecoverPanic(true) },
			path:      validatePod,
			operation: admissionv1.Delete,
			check: func(g Gomega, response *admissionv1.AdmissionResponse) {
				g.Expect(response.Allowed).To(BeFalse())
				g.Expect(response.Result.Message).To(ContainSubstring("panic"))
			},
		},
		{
			name: "WithContextFunc sets the cluster by host name",
			build: func(b *podWebhooks) *podWebhooks {
				return b.WithDefaulter(labelPod{}).WithContextFunc(func(ctx context.Context, r *http.Request) context.Context {
					return mccontext.WithCluster(ctx, multicluster.ClusterName(r.Host))
				})
			},
			path: mutatePod,
			check: func(g Gomega, response *admissionv1.AdmissionResponse) {
				g.Expect(string(response.Patch)).To(ContainSubstring(`"cluster":"eu.webhooks.example.com"`))
			},
		},
		{
			name:  "no validator, no path",
			build: func(b *podWebhooks) *podWebhooks { return b.WithDefaulter(labelPod{}) },
			path:  validatePod,
			check: func(g Gomega, response *admissionv1.AdmissionResponse) { g.Expect(response).To(BeNil()) },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			mgr := newWebhookManager(t)
			webhooks := mcbuilder.WebhookManagedBy(mgr.GetLocalManager(), &corev1.Pod{})
			g.Expect(tc.build(webhooks).Complete()).To(Succeed())
			if tc.operation == "" {
				tc.operation = admissionv1.Create
			}
			tc.check(g, admit(t, mgr, tc.path, tc.operation))
		})
	}
}

func TestWebhookLogConstructor(t *testing.T) {
	g := NewWithT(t)
	mgr := newWebhookManager(t)
	var lines bytes.Buffer
	logger := funcr.New(func(prefix, args string) { lines.WriteString(prefix + args + "\n") }, funcr.Options{})
	g.Expect(mcbuilder.WebhookManagedBy(mgr.GetLocalManager(), &corev1.Pod{}).
		WithDefaulter(logPod{}).
		WithLogConstructor(func(_ logr.Logger, req *admission.Request) logr.Logger {
			if req == nil {
				return logger
			}
			return logger.WithValues("pod", req.Name)
		}).
		Complete()).To(Succeed())
	g.Expect(admit(t, mgr, mutatePod, admissionv1.Create).Allowed).To(BeTrue())
	g.Expect(lines.String()).To(ContainSubstring(`"msg"="Defaulting" "pod"="a"`))
}

type logPod struct{}

func (logPod) Default(ctx context.Context, _ *corev1.Pod) error {
	log.FromContext(ctx).Info("Defaulting")
	return nil
}

type podConverter struct{}

func (podConverter) ConvertObject(context.Context, runtime.Object, runtime.Object) error { return nil }

func TestWebhookConverter(t *testing.T) {
	g := NewWithT(t)
	mgr := newWebhookManager(t)
	g.Expect(mcbuilder.WebhookManagedBy(mgr.GetLocalManager(), &corev1.Pod{}).
		WithConverter(func(scheme *runtime.Scheme) (conversion.Converter, error) {
			g.Expect(scheme).To(BeIdenticalTo(mgr.GetLocalManager().GetScheme()))
			return podConverter{}, nil
		}).
		Complete()).To(Succeed())
	got, ok := mgr.GetLocalManager().GetConverterRegistry().GetConverter(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind())
	g.Expect(ok).To(BeTrue())
	g.Expect(got).To(Equal(podConverter{}))
	_, pattern := mgr.GetWebhookServer().WebhookMux().Handler(httptest.NewRequest(http.MethodPost, "/convert", http.NoBody))
	g.Expect(pattern).To(Equal("/convert"))
}

func TestWebhookErrors(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(*podWebhooks) *podWebhooks
		err   string
	}{
		{
			name: "an invalid path",
			build: func(b *podWebhooks) *podWebhooks {
				return b.WithValidator(forbidPods{}).WithValidatorCustomPath("pods")
			},
			err: "does not match",
		},
		{
			name: "two validators",
			build: func(b *podWebhooks) *podWebhooks {
				return b.WithValidator(forbidPods{}).WithCustomValidator(anyPods{}) //nolint:staticcheck // kept for compatibility
			},
			err: "only one of",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			mgr := newWebhookManager(t)
			webhooks := mcbuilder.WebhookManagedBy(mgr.GetLocalManager(), &corev1.Pod{})
			g.Expect(tc.build(webhooks).Complete()).To(MatchError(ContainSubstring(tc.err)))
		})
	}
}
