// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// indexField is the field of all indexes, and a label.
const indexField = "indexed"

// index is the index of a kind.
type index struct {
	resource string
	object   client.Object
	list     client.ObjectList
}

// indexed are kinds that no controller watches.
var indexed = []index{
	{"pods", &corev1.Pod{}, &corev1.PodList{}},
	{"services", &corev1.Service{}, &corev1.ServiceList{}},
	{"serviceaccounts", &corev1.ServiceAccount{}, &corev1.ServiceAccountList{}},
	{"limitranges", &corev1.LimitRange{}, &corev1.LimitRangeList{}},
	{"resourcequotas", &corev1.ResourceQuota{}, &corev1.ResourceQuotaList{}},
	{"podtemplates", &corev1.PodTemplate{}, &corev1.PodTemplateList{}},
	{"replicationcontrollers", &corev1.ReplicationController{}, &corev1.ReplicationControllerList{}},
	{"persistentvolumeclaims", &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}},
	{"deployments.apps", &appsv1.Deployment{}, &appsv1.DeploymentList{}},
	{"statefulsets.apps", &appsv1.StatefulSet{}, &appsv1.StatefulSetList{}},
	{"daemonsets.apps", &appsv1.DaemonSet{}, &appsv1.DaemonSetList{}},
	{"replicasets.apps", &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{}},
	{"jobs.batch", &batchv1.Job{}, &batchv1.JobList{}},
	{"cronjobs.batch", &batchv1.CronJob{}, &batchv1.CronJobList{}},
}

// indexes are those of a fleet.
type indexes struct {
	mu    sync.Mutex // guards what follows
	taken int
	added []index
}

// take returns one that has not been added.
func (x *indexes) take() (index, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.taken == len(indexed) {
		return index{}, errors.New("no kind is left to index")
	}
	x.taken++
	return indexed[x.taken-1], nil
}

func (x *indexes) add(i index) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.added = append(x.added, i)
}

func (x *indexes) list() []index {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.added)
}
