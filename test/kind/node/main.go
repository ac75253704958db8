// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Node is the first process of a container that looks to kind like a control plane node.
// It runs etcd and kube-apiserver until it is stopped or one of them ends. Under the name
// cat, it prints files: kind's library runs that in the container.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	do := run
	if filepath.Base(os.Args[0]) == "cat" {
		do = func() error { return cat(os.Args[1:]) }
	}
	if err := do(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

func cat(paths []string) error {
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(os.Stdout, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

const pki = "/etc/kubernetes/pki/"

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ended := make(chan error, 2)
	for _, arguments := range [][]string{
		{
			"/bin/etcd", "--data-dir=/var/lib/etcd",
			"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380",
		},
		{
			"/bin/kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443",
			"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC",
			"--disable-admission-plugins=ServiceAccount", "--client-ca-file=" + pki + "ca.crt",
			"--tls-cert-file=" + pki + "apiserver.crt", "--tls-private-key-file=" + pki + "apiserver.key",
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + pki + "apiserver.key", "--service-account-signing-key-file=" + pki + "apiserver.key",
		},
	} {
		command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
		command.WaitDelay = 5 * time.Second
		go func() { ended <- fmt.Errorf("%s: %w", arguments[0], command.Run()) }()
	}
	err := <-ended
	stopped := ctx.Err() != nil
	stop()
	err = errors.Join(err, <-ended)
	if stopped {
		return nil
	}
	return err
}
