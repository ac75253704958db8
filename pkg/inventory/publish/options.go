// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Options define what is published, and where.
type Options struct {
	// Hub is the cluster to write to. Without a QPS, requests are not throttled.
	// Required.
	Hub *rest.Config

	// Source lists the clusters. It is restarted when it fails; see
	// inventory.Restart. Required.
	Source inventory.Source

	// Namespace of the published profiles. It must exist. Required.
	Namespace string

	// ManagerName is the name of the cluster manager in spec.clusterManager.name and
	// in the label x-k8s.io/cluster-manager of all published profiles, in place of
	// that of the source (KEP-4322). Two publishers with different sources for one
	// namespace need different names: each removes the profiles with its name that
	// its own source does not list. Required; a label value.
	ManagerName string

	// Probe observes a cluster, from several goroutines for different clusters. It
	// gets the profile of the source. Defaults to none: the conditions, version and
	// ID of the source are published.
	Probe ProbeFunc

	// ProbeInterval is the time between two probes of a cluster, with a jitter of
	// 10 %. Defaults to 30 s.
	ProbeInterval time.Duration

	// ProbeTimeout is when the context of a probe ends. Defaults to 10 s.
	ProbeTimeout time.Duration

	// FailureThreshold is how many probes in a row must give another result than True
	// before a profile that is published as healthy is changed. Defaults to 2.
	FailureThreshold int

	// WriteInterval is the average time between two writes of a profile, at least.
	// KEP-4322 asks for 30 s. Changes in that time are written together. A change of
	// a condition's status or of the access providers is written earlier, and the
	// next write is later for it. Defaults to 30 s.
	WriteInterval time.Duration

	// HeartbeatInterval is how often lastObservedTime of the properties is
	// published if nothing else changes, while probes succeed. Defaults to 5 min.
	HeartbeatInterval time.Duration
}

// ProbeFunc observes a cluster. It must return when its context ends; until it does,
// its cluster is not probed again. An error means that the cluster could not be
// probed, for example because there is no credential: its health is Unknown with the
// reason ProbeFailed, and the error is published as the message. It must not contain
// a secret. ProbeCluster does this for a rest.Config.
type ProbeFunc func(ctx context.Context, profile *inventory.Profile) (ProbeResult, error)

// ProbeResult is what a probe has observed.
type ProbeResult struct {
	// Status, Reason and Message of the condition ControlPlaneHealthy. Reason is
	// required (a CamelCase word). The message should be the same for the same state.
	Status          metav1.ConditionStatus
	Reason, Message string

	// KubernetesVersion of the cluster, "" if it was not observed.
	KubernetesVersion string

	// ClusterID is the UID of the namespace kube-system, "" if it was not observed.
	// It is published if the source has no ID (KEP-2149).
	ClusterID string
}

// Validate returns an error if a field is missing or invalid.
func (o *Options) Validate() error {
	var errs []error
	if o.Hub == nil {
		errs = append(errs, errors.New("must specify Hub, the rest.Config of the cluster to write to"))
	}
	if o.Source == nil {
		errs = append(errs, errors.New("must specify Source"))
	}
	if o.Namespace == "" {
		errs = append(errs, errors.New("must specify Namespace, in which the profiles are published"))
	} else if messages := validation.IsDNS1123Label(o.Namespace); len(messages) > 0 {
		errs = append(errs, fmt.Errorf("invalid Namespace %q: %s", o.Namespace, strings.Join(messages, "; ")))
	}
	if o.ManagerName == "" {
		errs = append(errs, errors.New("must specify ManagerName, the name of the cluster manager in the profiles"))
	} else if messages := validation.IsValidLabelValue(o.ManagerName); len(messages) > 0 {
		errs = append(errs, fmt.Errorf("invalid ManagerName %q: %s", o.ManagerName, strings.Join(messages, "; ")))
	}
	for name, d := range map[string]time.Duration{
		"ProbeInterval": o.ProbeInterval, "ProbeTimeout": o.ProbeTimeout,
		"WriteInterval": o.WriteInterval, "HeartbeatInterval": o.HeartbeatInterval,
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s must not be negative", name))
		}
	}
	if o.FailureThreshold < 0 {
		errs = append(errs, errors.New("FailureThreshold must not be negative"))
	}
	return errors.Join(errs...)
}

func (o *Options) setDefaults() {
	o.ProbeInterval = cmp.Or(o.ProbeInterval, 30*time.Second)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 10*time.Second)
	o.FailureThreshold = cmp.Or(o.FailureThreshold, 2)
	o.WriteInterval = cmp.Or(o.WriteInterval, 30*time.Second)
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, 5*time.Minute)
}
