// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// environment is the key of the testscript.Env in its values.
type environment struct{}

// parallel runs processes at the same time, which must all print the same.
func parallel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: parallel N PROGRAM ARG...")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	env := ts.Value(environment{}).(*testscript.Env)
	path, err := lookPath(env, args[1])
	ts.Check(err)
	variables := append(slices.Clone(env.Vars), "ROTATING="+ts.Getenv("ROTATING"))
	outputs := make([]bytes.Buffer, n)
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			c := exec.Command(path, args[2:]...)
			c.Dir, c.Env, c.Stdout = env.WorkDir, variables, &outputs[i]
			errs[i] = c.Run()
		})
	}
	group.Wait()
	for i := range n {
		if errs[i] != nil || !bytes.Equal(outputs[i].Bytes(), outputs[0].Bytes()) {
			ts.Fatalf("process %d: %v, printed %q, the first %q", i, errs[i], &outputs[i], &outputs[0])
		}
	}
}

// profile creates or deletes a profile of a script's own.
func (p *planes) profile(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) != map[bool]int{false: 3, true: 2}[neg] {
		ts.Fatalf("usage: profile NAMESPACE NAME MEMBER, or ! profile NAMESPACE NAME")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	profile := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: args[0], Name: args[1]}}
	if neg {
		ts.Check(p.hub.Client.Delete(ctx, profile))
		return
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: args[0]}}
	ts.Check(client.IgnoreAlreadyExists(p.hub.Client.Create(ctx, namespace)))
	member := &inventory.Profile{}
	ts.Check(p.hub.Client.Get(ctx, client.ObjectKey{Namespace: realfleet.FleetNamespace, Name: args[2]}, member))
	profile.Labels, profile.Spec = member.Labels, member.Spec
	ts.Check(p.hub.Client.Create(ctx, profile))
	profile.Status = member.Status
	ts.Check(p.hub.Client.Status().Update(ctx, profile))
}

// rotating is a plugin whose credential is in the folder that ROTATING names: the token in
// the file token, and its lifetime in the file lifetime, if there is one. Each run is a line
// in the file runs.
type rotating struct{}

var _ plugin.Plugin = &rotating{}

func (*rotating) Name() string    { return "mc-credential-rotating" }
func (*rotating) Version() string { return "test" }

func (*rotating) Credential(context.Context, plugin.Request) (*plugin.Credential, error) {
	dir := os.Getenv("ROTATING")
	runs, err := os.OpenFile(filepath.Join(dir, "runs"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = runs.Close() }()
	if _, err := fmt.Fprintln(runs, "run"); err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		return nil, err
	}
	credential := &plugin.Credential{Token: string(token)}
	if text, err := os.ReadFile(filepath.Join(dir, "lifetime")); err == nil {
		lifetime, err := time.ParseDuration(string(bytes.TrimSpace(text)))
		if err != nil {
			return nil, err
		}
		credential.Expiry = time.Now().Add(lifetime)
	}
	return credential, nil
}
