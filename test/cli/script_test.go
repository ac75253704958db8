// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-dev/rollcall/internal/cli"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
)

// TestMain makes the programs commands of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubectl-mc_credential":      func() { os.Exit(cli.Main()) },
		"mc-credential":              func() { os.Exit(cli.Main()) },
		"mc-credential-token-secret": func() { plugin.Main(tokensecret.New()) },
		"mc-credential-rotating":     func() { plugin.Main(&rotating{}) },
	})
}

// TestScripts runs testdata/script/*.txtar. Scripts run at the same time and share the
// control planes: each changes only objects and profiles of its own.
//
// Variables: HUB and the kubeconfigs EAST, WEST, DOWN of administrators, PLUGINS is the
// folder of the plugins, KUBECONFIG that of the hub with the context's namespace fleet,
// KUBECTL the path of kubectl, CONTROLLER that of examples/cluster-inventory-api. Commands:
//
//	code N PROGRAM ARG...            is exec for a program that must end with exit code N
//	parallel N PROGRAM ARG...        runs N processes at the same time, which must print the same
//	await FILE REGEXP                waits until a line of the file matches
//	configmap KUBECONFIG NAME LABEL  creates a ConfigMap with the label script=LABEL
//	patch KUBECONFIG FILE            patches a Deployment with the file, without keeping it
//	profile NAMESPACE NAME MEMBER    creates a profile with the access of the member;
//	! profile NAMESPACE NAME         deletes it
//	request NAMESPACE NAME           lists ConfigMaps of a profile's cluster, as a controller
func TestScripts(t *testing.T) {
	planes := startPlanes(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			plugin, err := lookPath(env, "mc-credential-token-secret")
			if err != nil {
				return err
			}
			env.Values[environment{}] = env
			return planes.setUp(env, filepath.Dir(plugin))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"await": await, "code": code, "configmap": configMap, "parallel": parallel, "patch": patch,
			"profile": planes.profile, "request": planes.request,
		},
	})
}

// code runs a program and compares its exit code.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, not %d", got, want)
	}
}

// await waits until a line of a file matches.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE REGEXP")
	}
	line, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	var text []byte
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if text, _ = os.ReadFile(ts.MkAbs(args[0])); line.Match(text) {
			return
		}
	}
	ts.Fatalf("no line of %s matches %s:\n%s", args[0], args[1], text)
}

// configMap creates a ConfigMap.
func configMap(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: configmap KUBECONFIG NAME LABEL")
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	ts.Check(err)
	cluster, err := client.New(config, client.Options{})
	ts.Check(err)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceDefault, Name: args[1], Labels: map[string]string{"script": args[2]},
	}}
	ts.Check(cluster.Create(context.Background(), object))
}

// patch creates a Deployment and applies a strategic merge patch to it, which must change
// volumes of the API server's answer.
func patch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: patch KUBECONFIG FILE")
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	ts.Check(err)
	cluster, err := client.New(config, client.Options{})
	ts.Check(err)
	labels := map[string]string{"app": "controller"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "controller"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "example.com/controller"}}
	ts.Check(cluster.Create(context.Background(), deployment))
	defer func() { ts.Check(cluster.Delete(context.Background(), deployment)) }()
	change, err := yaml.YAMLToJSON([]byte(ts.ReadFile(args[1])))
	ts.Check(err)
	ts.Check(cluster.Patch(context.Background(), deployment, client.RawPatch(types.StrategicMergePatchType, change)))
	pod := deployment.Spec.Template.Spec
	if len(pod.Volumes) == 0 || len(pod.Volumes) != len(pod.Containers[0].VolumeMounts) || pod.Containers[0].Image == "" {
		ts.Fatalf("not patched: %v", pod)
	}
}

// lookPath returns the path of a program in the PATH of the script.
func lookPath(env *testscript.Env, program string) (string, error) {
	for _, dir := range filepath.SplitList(env.Getenv("PATH")) {
		if path := filepath.Join(dir, program); isFile(path) {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
