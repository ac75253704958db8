// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import "k8s.io/apimachinery/pkg/runtime/schema"

// facts are the properties of a built-in kind that its Go type does not have.
type facts struct {
	clusterScoped bool
	virtual       bool
	noGeneration  bool
	shortNames    []string
	categories    []string
	fields        []string
	subresources  map[string]schema.GroupVersionKind
}

var (
	all        = []string{"all"}
	extensions = []string{"api-extensions"}
)

// builtin lists the kinds of Kubernetes that differ from a plain namespaced kind.
var builtin = map[schema.GroupKind]facts{
	{Kind: "ComponentStatus"}: {clusterScoped: true, shortNames: []string{"cs"}},
	{Kind: "ConfigMap"}:       {shortNames: []string{"cm"}},
	{Kind: "Endpoints"}:       {shortNames: []string{"ep"}},
	{Kind: "Event"}: {shortNames: []string{"ev"}, fields: []string{
		"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
		"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
		"reason", "reportingComponent", "type",
	}},
	{Kind: "Namespace"}: {
		clusterScoped: true, noGeneration: true, shortNames: []string{"ns"}, fields: []string{"status.phase"},
		subresources: map[string]schema.GroupVersionKind{"finalize": {Version: "v1", Kind: "Namespace"}},
	},
	{Kind: "Node"}: {
		clusterScoped: true, noGeneration: true, shortNames: []string{"no"}, fields: []string{"spec.unschedulable"},
	},
	{Kind: "PersistentVolume"}:      {clusterScoped: true, noGeneration: true, shortNames: []string{"pv"}},
	{Kind: "PersistentVolumeClaim"}: {noGeneration: true, shortNames: []string{"pvc"}},
	{Kind: "Pod"}: {shortNames: []string{"po"}, categories: all, fields: []string{
		"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
		"spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
	}},
	{Kind: "ReplicationController"}: {shortNames: []string{"rc"}, categories: all, fields: []string{"status.replicas"}},
	{Kind: "LimitRange"}:            {shortNames: []string{"limits"}},
	{Kind: "ResourceQuota"}:         {noGeneration: true, shortNames: []string{"quota"}},
	{Kind: "Secret"}:                {fields: []string{"type"}},
	{Kind: "Service"}: {
		noGeneration: true, shortNames: []string{"svc"}, categories: all, fields: []string{"spec.clusterIP", "spec.type"},
	},
	{Kind: "ServiceAccount"}: {shortNames: []string{"sa"}, subresources: map[string]schema.GroupVersionKind{
		"token": {Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"},
	}},

	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          {clusterScoped: true, categories: extensions},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   {clusterScoped: true, categories: extensions},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     {clusterScoped: true, categories: extensions},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        {clusterScoped: true, categories: extensions},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: {clusterScoped: true, categories: extensions},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   {clusterScoped: true, categories: extensions},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {
		clusterScoped: true, shortNames: []string{"crd", "crds"}, categories: extensions,
	},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: {
		clusterScoped: true, noGeneration: true, categories: extensions,
	},
	{Group: "apps", Kind: "DaemonSet"}:                               {shortNames: []string{"ds"}, categories: all},
	{Group: "apps", Kind: "Deployment"}:                              {shortNames: []string{"deploy"}, categories: all},
	{Group: "apps", Kind: "ReplicaSet"}:                              {shortNames: []string{"rs"}, categories: all, fields: []string{"status.replicas"}},
	{Group: "apps", Kind: "StatefulSet"}:                             {shortNames: []string{"sts"}, categories: all},
	{Group: "authentication.k8s.io", Kind: "SelfSubjectReview"}:      {clusterScoped: true, virtual: true},
	{Group: "authorization.k8s.io", Kind: "SelfSubjectAccessReview"}: {clusterScoped: true, virtual: true},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:          {noGeneration: true, shortNames: []string{"hpa"}, categories: all},
	{Group: "batch", Kind: "CronJob"}:                                {shortNames: []string{"cj"}, categories: all},
	{Group: "batch", Kind: "Job"}:                                    {categories: all, fields: []string{"status.successful"}},
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:       {clusterScoped: true, fields: []string{"spec.signerName"}},
	{Group: "certificates.k8s.io", Kind: "PodCertificateRequest"}:    {fields: []string{"spec.signerName", "spec.podName", "spec.nodeName"}},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {
		clusterScoped: true, noGeneration: true, shortNames: []string{"csr"}, fields: []string{"spec.signerName"},
		subresources: map[string]schema.GroupVersionKind{
			"approval": {Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"},
		},
	},
	{Group: "events.k8s.io", Kind: "Event"}: {shortNames: []string{"ev"}, fields: []string{
		"regarding.kind", "regarding.namespace", "regarding.name", "reason", "reportingController", "type",
	}},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                 {clusterScoped: true},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: {clusterScoped: true},
	{Group: "internal.apiserver.k8s.io", Kind: "StorageVersion"}:                {clusterScoped: true},
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                             {clusterScoped: true, shortNames: []string{"ip"}},
	{Group: "networking.k8s.io", Kind: "Ingress"}:                               {shortNames: []string{"ing"}},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                          {clusterScoped: true},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                         {shortNames: []string{"netpol"}},
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:                           {clusterScoped: true, noGeneration: true},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                {clusterScoped: true},
	{Group: "policy", Kind: "PodDisruptionBudget"}:                              {shortNames: []string{"pdb"}},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                   {clusterScoped: true},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:            {clusterScoped: true},
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                             {clusterScoped: true},
	{Group: "resource.k8s.io", Kind: "DeviceTaintRule"}:                         {clusterScoped: true},
	{Group: "resource.k8s.io", Kind: "ResourcePoolStatusRequest"}:               {clusterScoped: true},
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:                           {clusterScoped: true, fields: []string{"spec.nodeName", "spec.driver"}},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                         {clusterScoped: true, shortNames: []string{"pc"}},
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                                {clusterScoped: true},
	{Group: "storage.k8s.io", Kind: "CSINode"}:                                  {clusterScoped: true},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                             {clusterScoped: true, shortNames: []string{"sc"}},
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                         {clusterScoped: true, noGeneration: true},
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}:                    {clusterScoped: true, shortNames: []string{"vac"}},
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}:         {clusterScoped: true},
}
