// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"cmp"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// DefaultSchedule is the default of CronJobOptions.Schedule: every six hours.
	DefaultSchedule = "17 */6 * * *"

	// DefaultCronJobName is the default of CronJobOptions.Name.
	DefaultCronJobName = "mc-credential-rotate"

	maxCronJobName = 52
)

// CronJobOptions are what CronJob needs.
type CronJobOptions struct {
	// Namespace, SecretNamespace and Names are those of RotateOptions. With Names, the
	// Role is limited to their Secrets.
	Namespace       string
	SecretNamespace string
	Names           []string

	// Image has the program mc-credential in its PATH. Required.
	Image string

	// Schedule is that of the CronJob. Tokens are renewed when less than a third of
	// their lifetime is left, so it must be much shorter. Defaults to DefaultSchedule.
	Schedule string

	// Name of all objects. Two inventories with one SecretNamespace need different
	// ones. Defaults to DefaultCronJobName.
	Name string
}

// CronJob returns the objects of a CronJob in the hub that renews tokens: a
// ServiceAccount, a Role, a RoleBinding and the CronJob, in the namespace of the
// Secrets. Without names, the Role allows to read and write all Secrets of that
// namespace: keep no others there.
func CronJob(o CronJobOptions) ([]client.Object, error) {
	o.SecretNamespace = cmp.Or(o.SecretNamespace, o.Namespace)
	o.Schedule = cmp.Or(o.Schedule, DefaultSchedule)
	o.Name = cmp.Or(o.Name, DefaultCronJobName)
	for _, name := range append([]string{"x"}, o.Names...) {
		if err := checkNames(o.Namespace, name, o.SecretNamespace); err != nil {
			return nil, err
		}
	}
	switch {
	case o.Image == "" || strings.ContainsAny(o.Image, " \t\n"):
		return nil, invalid("image %q: must be that of a container with the program mc-credential", o.Image)
	case !isName(o.Name) || len(o.Name) > maxCronJobName:
		return nil, invalid("name %q: must be a DNS-1123 subdomain of at most %d characters", o.Name, maxCronJobName)
	case len(strings.Fields(o.Schedule)) != 5 && !strings.HasPrefix(o.Schedule, "@"):
		return nil, invalid("schedule %q: must be in the format of cron, such as %q", o.Schedule, DefaultSchedule)
	}
	meta := metav1.ObjectMeta{Namespace: o.SecretNamespace, Name: o.Name, Labels: map[string]string{LabelManagedBy: Manager}}
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "update"}}
	args := append([]string{"rotate", "--namespace=" + o.Namespace, "--secret-namespace=" + o.SecretNamespace}, o.Names...)
	if len(o.Names) == 0 {
		args = append(args, "--all")
	} else {
		rule.Verbs = []string{"get", "update"}
		for _, name := range o.Names {
			rule.ResourceNames = append(rule.ResourceNames, objectName(o.Namespace, name))
		}
	}
	rbac := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	return []client.Object{
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: meta},
		&rbacv1.Role{TypeMeta: rbac("Role"), ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.RoleBinding{
			TypeMeta: rbac("RoleBinding"), ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: o.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: o.SecretNamespace, Name: o.Name}},
		},
		&batchv1.CronJob{
			TypeMeta: metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "CronJob"}, ObjectMeta: meta,
			Spec: batchv1.CronJobSpec{
				Schedule: o.Schedule, ConcurrencyPolicy: batchv1.ForbidConcurrent,
				JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
					BackoffLimit:          ptr.To(int32(2)),
					ActiveDeadlineSeconds: ptr.To(int64((15 * time.Minute).Seconds())),
					Template:              corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: pod(o, args)},
				}},
			},
		},
	}, nil
}

func pod(o CronJobOptions, args []string) corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName: o.Name,
		RestartPolicy:      corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(65532)), RunAsGroup: ptr.To(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "rotate", Image: o.Image, Command: []string{"mc-credential"}, Args: args,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}
