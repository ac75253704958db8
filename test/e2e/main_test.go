// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests what crosses packages:
//
//   - controllers over a fleet in which some clusters fail, in every way that
//     clusters do, while the others must not notice (env_test.go);
//   - several replicas of one program, of which one is the leader
//     (replica_test.go);
//   - a hub and its members on real control planes, with a real plugin
//     (planes_test.go). Without KUBEBUILDER_ASSETS these tests are skipped.
package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logs.logger())
	klog.SetLogger(logs.logger())
	// Real control planes take longer than those of mctest.
	gomega.SetDefaultEventuallyTimeout(2 * mctest.Timeout)
	gomega.SetDefaultConsistentlyDuration(300 * time.Millisecond)
	code := m.Run()
	err := planes.stop()
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
