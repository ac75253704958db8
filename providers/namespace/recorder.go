// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// subject makes sure that an Event is created in the namespace: that is where the object
// is that it is about.
type subject struct {
	scope *scope
	log   logr.Logger
}

// of returns a reference to the object, nil if there must be no Event about it. One
// about a cluster-scoped object is created in the namespace.
func (s *subject) of(obj runtime.Object) *corev1.ObjectReference {
	ref, err := reference.GetReference(s.scope.scheme, obj)
	if err == nil {
		err = s.scope.check(ref.Kind, ref.Name, ref.Namespace)
	}
	if err != nil {
		s.log.Error(err, "Dropped an event", "namespace", s.scope.namespace)
		return nil
	}
	ref = ref.DeepCopy()
	ref.Namespace = s.scope.namespace
	return ref
}

// legacyRecorder confines a recorder of the core API.
type legacyRecorder struct {
	subject
	shared record.EventRecorder
}

var _ record.EventRecorder = &legacyRecorder{}

func (r *legacyRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	if ref := r.of(object); ref != nil {
		r.shared.Event(ref, eventtype, reason, message)
	}
}

func (r *legacyRecorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	if ref := r.of(object); ref != nil {
		r.shared.Eventf(ref, eventtype, reason, messageFmt, args...)
	}
}

func (r *legacyRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	if ref := r.of(object); ref != nil {
		r.shared.AnnotatedEventf(ref, annotations, eventtype, reason, messageFmt, args...)
	}
}

// eventRecorder confines a recorder of the events API. The related object may be in any
// namespace: it is only mentioned.
type eventRecorder struct {
	subject
	shared recorder.EventRecorder
}

var _ recorder.EventRecorder = &eventRecorder{}

func (r *eventRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if ref := r.of(regarding); ref != nil {
		r.shared.Eventf(ref, related, eventtype, reason, action, note, args...)
	}
}

func (r *eventRecorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	if ref := r.of(regarding); ref != nil {
		r.shared.AnnotatedEventf(ref, related, annotations, eventtype, reason, action, note, args...)
	}
}
