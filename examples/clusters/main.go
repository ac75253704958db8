// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Clusters reconciles clusters that are added and removed by commands on its standard
// input, and prints a line for each ConfigMap:
//
//	add eu eu.kubeconfig
//	remove eu
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	"github.com/rollcall-dev/rollcall/providers/clusters"
)

func main() {
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		ctrl.Log.Error(err, "The controller has failed")
		os.Exit(1)
	}
}

func run() error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	provider, ctx := clusters.New(), ctrl.SetupSignalHandler()
	// A manager needs a config for leader election and for its local cluster. Neither is
	// used here, so it need not lead anywhere.
	mgr, err := newManager(&rest.Config{}, provider, os.Stdout, mcmanager.Options{})
	if err != nil {
		return err
	}
	go readCommands(ctx, os.Stdin, provider)
	return mgr.Start(ctx)
}

// newManager returns a manager that writes a line for each ConfigMap.
func newManager(config *rest.Config, provider multicluster.Provider, out io.Writer, options mcmanager.Options) (mcmanager.Manager, error) {
	mgr, err := mcmanager.New(config, provider, options)
	if err != nil {
		return nil, err
	}
	return mgr, mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			fmt.Fprintf(out, "ConfigMap %s in cluster %q\n", req.NamespacedName, req.ClusterName)
			return ctrl.Result{}, nil
		}))
}

// readCommands runs the commands of an input until it ends.
func readCommands(ctx context.Context, input io.Reader, provider *clusters.Provider) {
	lines := bufio.NewScanner(input)
	for lines.Scan() {
		if err := runCommand(ctx, strings.Fields(lines.Text()), provider); err != nil {
			log.FromContext(ctx).Error(err, "The command has failed", "command", lines.Text())
		}
	}
}

func runCommand(ctx context.Context, words []string, provider *clusters.Provider) error {
	switch {
	case len(words) == 3 && words[0] == "add":
		config, err := clientcmd.BuildConfigFromFlags("", words[2])
		if err != nil {
			return err
		}
		cl, err := cluster.New(config)
		if err != nil {
			return err
		}
		// Until the context ends, or the cluster is removed.
		return provider.Add(ctx, multicluster.ClusterName(words[1]), cl)
	case len(words) == 2 && words[0] == "remove":
		provider.Remove(multicluster.ClusterName(words[1]))
		return nil
	default:
		return errors.New("unknown command: want 'add NAME KUBECONFIG' or 'remove NAME'")
	}
}
