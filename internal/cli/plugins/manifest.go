// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
)

// How the plugins of an image get into a pod.
const (
	imageVolume   = "image-volume"
	initContainer = "init-container"
)

var methods = []string{imageVolume, initContainer}

type manifest struct {
	env    *command.Env
	output output.Flags

	images     []string
	method     string
	deployment string
	container  string
	dir        string
	folder     string
}

func newManifest(env *command.Env) *cobra.Command {
	o := &manifest{env: env}
	c := &cobra.Command{
		Use:   "manifest --image IMAGE [--image IMAGE...]",
		Short: "Print a patch that mounts plugins into the pods of a Deployment",
		Long: `Print a strategic merge patch that mounts plugins into the pods of a Deployment, and the flags that its controller needs.

Each image has plugins in the folder /bin. With --method=image-volume, which needs Kubernetes 1.35 or the feature ImageVolume, the image is mounted as it is. With --method=init-container, an init container copies the plugins; the image must then have cp.`,
		Example: `  # Plugins of one image, for kubectl patch or kustomize
  mc-credential plugins manifest --image registry.example.com/gcp-plugin:v1.2.0 --deployment controller > patch.yaml
  kubectl patch deployment controller --patch-file patch.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	c.Flags().StringArrayVar(&o.images, "image", nil, "An image with plugins, best with its digest; may be repeated")
	c.Flags().StringVar(&o.method, "method", imageVolume, "How the plugins get into the pod: one of "+strings.Join(methods, ", "))
	c.Flags().StringVar(&o.deployment, "deployment", "controller", "The name of the Deployment")
	c.Flags().StringVar(&o.container, "container", "manager", "The name of the controller's container")
	c.Flags().StringVar(&o.dir, "dir", "/plugins", "The folder in the container")
	c.Flags().StringVar(&o.folder, "image-folder", "bin", "The folder of the plugins in the image")
	o.output.AddFlags(c, output.YAML, output.JSON)
	return c
}

// patch has the parts of a Deployment that are patched.
type patch struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        patchMeta `json:"metadata"`
	Spec            struct {
		Template struct {
			Spec podPatch `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type patchMeta struct {
	Name string `json:"name"`
}

type podPatch struct {
	Volumes        []corev1.Volume  `json:"volumes"`
	InitContainers []containerPatch `json:"initContainers,omitempty"`
	Containers     []containerPatch `json:"containers"`
}

type containerPatch struct {
	Name            string                  `json:"name"`
	Image           string                  `json:"image,omitempty"`
	Command         []string                `json:"command,omitempty"`
	VolumeMounts    []corev1.VolumeMount    `json:"volumeMounts"`
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}

func (o *manifest) run() error {
	if _, err := o.output.Format(); err != nil {
		return err
	}
	switch {
	case len(o.images) == 0:
		return command.Usagef("name at least one image with --image")
	case slices.Contains(o.images, ""):
		return command.Usagef("--image must not be empty")
	case !slices.Contains(methods, o.method):
		return command.Usagef("invalid --method %q: valid values are %s", o.method, strings.Join(methods, ", "))
	case !path.IsAbs(o.dir):
		return command.Usagef("--dir must be an absolute path, not %q", o.dir)
	}
	if err := o.output.PrintValue(o.env.Out, o.patch()); err != nil {
		return err
	}
	var dirs []string
	for i := range o.images {
		dirs = append(dirs, "--credential-plugin-dir="+o.folderOf(i))
	}
	_, err := fmt.Fprintf(o.env.ErrOut, "The controller needs these flags: %s\n", strings.Join(dirs, " "))
	return err
}

// mountOf and folderOf return where the plugins of an image are in the container: an image
// volume has the whole image.
func (o *manifest) mountOf(i int) string {
	if len(o.images) == 1 {
		return o.dir
	}
	return path.Join(o.dir, fmt.Sprint(i))
}

func (o *manifest) folderOf(i int) string {
	if o.method == initContainer {
		return o.mountOf(i)
	}
	return path.Join(o.mountOf(i), o.folder)
}

func (o *manifest) patch() *patch {
	p := &patch{TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"}, Metadata: patchMeta{Name: o.deployment}}
	pod := &p.Spec.Template.Spec
	manager := containerPatch{Name: o.container}
	for i, image := range o.images {
		volume := corev1.Volume{Name: fmt.Sprintf("credential-plugins-%d", i)}
		mount := corev1.VolumeMount{Name: volume.Name, MountPath: o.mountOf(i), ReadOnly: true}
		if o.method == imageVolume {
			volume.Image = &corev1.ImageVolumeSource{Reference: image, PullPolicy: corev1.PullIfNotPresent}
		} else {
			volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
			pod.InitContainers = append(pod.InitContainers, o.copies(i, image, volume.Name))
		}
		pod.Volumes = append(pod.Volumes, volume)
		manager.VolumeMounts = append(manager.VolumeMounts, mount)
	}
	pod.Containers = []containerPatch{manager}
	return p
}

// copies returns the init container that copies the plugins of an image.
func (o *manifest) copies(i int, image, volume string) containerPatch {
	return containerPatch{
		Name:         volume,
		Image:        image,
		Command:      []string{"cp", "-r", path.Join("/", o.folder) + "/.", o.mountOf(i)},
		VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: o.mountOf(i)}},
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(65532)), ReadOnlyRootFilesystem: ptr.To(true), AllowPrivilegeEscalation: ptr.To(false),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}
