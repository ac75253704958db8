// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package kind tests providers/kind on a real Docker engine: containers with kind's labels,
// with a real kube-apiserver and etcd. "make test-kind" runs it.
package kind
