// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleetbench

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/test/internal/measure"
)

// leanCaches measures what Pods take in a cache, as they are and lean.
func leanCaches(tb testing.TB, s size) []row {
	tb.Helper()
	asTheyAre := heapPerPod(tb, s, nil)
	lean := func(option cluster.Option) float64 {
		o := &cluster.Options{}
		option(o)
		transform := o.Cache.DefaultTransform
		for _, of := range o.Cache.ByObject {
			transform = of.Transform
		}
		return heapPerPod(tb, s, transform)
	}
	return []row{
		{name: "a Pod in a cache: without managedFields", format: measure.Kilobytes, other: asTheyAre, fleet: lean(fleet.LeanCache()), compare: quotient},
		{name: "a Pod in a cache: metadata only", format: measure.Kilobytes, other: asTheyAre, fleet: lean(fleet.LeanCache(&corev1.Pod{})), compare: quotient},
	}
}

func heapPerPod(tb testing.TB, s size, transform func(any) (any, error)) float64 {
	tb.Helper()
	encoded, err := json.Marshal(examplePod())
	if err != nil {
		tb.Fatal(err)
	}
	before := measure.Settled()
	pods := make([]any, s.pods)
	for i := range pods {
		pod := &corev1.Pod{}
		if err := json.Unmarshal(encoded, pod); err != nil {
			tb.Fatal(err)
		}
		if pods[i] = pod; transform == nil {
			continue
		}
		if pods[i], err = transform(pod); err != nil {
			tb.Fatal(err)
		}
	}
	after := measure.Settled()
	runtime.KeepAlive(pods)
	return float64(after.Heap-before.Heap) / float64(s.pods)
}

// examplePod is of the size of one of a Deployment with two containers.
func examplePod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "checkout-7c9d8f6b5-x2x4z", UID: "5b0e2a4e-0000-4000-8000-000000000000", ResourceVersion: "123456789",
		Labels:          map[string]string{"app": "checkout", "pod-template-hash": "7c9d8f6b5", "version": "v1.2.3"},
		Annotations:     map[string]string{"prometheus.io/scrape": "true", "checksum/config": strings.Repeat("0a", 32)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "checkout-7c9d8f6b5", UID: "6b0e2a4e"}},
	}}
	for i := range 2 {
		container := corev1.Container{Name: fmt.Sprint("container-", i), Image: "registry.example.com/shop/checkout:v1.2.3"}
		status := corev1.ContainerStatus{Name: container.Name, Image: container.Image, Ready: true, ContainerID: "containerd://" + strings.Repeat("0a", 32)}
		for j := range 10 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", j), Value: "some value or other"})
		}
		for j := range 3 {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: fmt.Sprint("volume-", j), MountPath: "/some/path"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	for _, condition := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue})
	}
	for _, manager := range []string{"kube-controller-manager", "kubelet"} {
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			// About what there is in clusters for Pods such as this one.
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{"` + strings.Repeat("f:name,", 250) + `":{}}}}`),
		})
	}
	return pod
}
