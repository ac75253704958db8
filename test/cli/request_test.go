// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/register"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
)

// request is the command of scripts that connects to a cluster as a controller does.
func (p *planes) request(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: request NAMESPACE NAME")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := p.list(ctx, client.ObjectKey{Namespace: args[0], Name: args[1]}, ts.Getenv("PROVIDERS"), ts.Getenv("PLUGINS"))
	switch {
	case neg && err == nil:
		err = errors.New("unexpected success")
	case neg:
		ts.Logf("%v", err)
		err = nil
	}
	ts.Check(err)
}

// list lists the ConfigMaps of the profile's cluster.
func (p *planes) list(ctx context.Context, key client.ObjectKey, providers, plugins string) error {
	profile := &inventory.Profile{}
	if err := p.hub.Client.Get(ctx, key, profile); err != nil {
		return err
	}
	resolver, err := credentials.New(credentials.Options{ProviderFile: providers, PluginDirs: []string{plugins}})
	if err != nil {
		return err
	}
	defer resolver.Close()
	access, err := resolver.Resolve(ctx, profile)
	if err != nil {
		return err
	}
	defer access.Release()
	cluster, err := client.New(access.RESTConfig(), client.Options{})
	if err != nil {
		return err
	}
	return cluster.List(ctx, &corev1.ConfigMapList{})
}

// TestAnnotation compares what register writes with what the plugin reads.
func TestAnnotation(t *testing.T) {
	if register.AnnotationServer != tokensecret.AnnotationServer {
		t.Errorf("register writes %s, and the plugin reads %s", register.AnnotationServer, tokensecret.AnnotationServer)
	}
}
