// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/publish"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestOnce(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	src := newSource(synthetic(t, "eu"), synthetic(t, "changed"), synthetic(t, "theirs"))
	h.put(own("stale", manager))
	h.put(own("theirs", "other"))
	p, err := publish.New(h.options(src, newProbes().probe))
	g.Expect(err).NotTo(HaveOccurred())
	outcomes := func(run func(context.Context) ([]publish.Status, error)) map[string]publish.Outcome {
		t.Helper()
		statuses, err := run(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		all := map[string]publish.Outcome{}
		for _, s := range statuses {
			g.Expect(s.Outcome).NotTo(Equal(publish.Failed), s.Message)
			all[s.Name] = s.Outcome
		}
		return all
	}
	first := map[string]publish.Outcome{"eu": publish.Created, "changed": publish.Created, "stale": publish.Removed, "theirs": publish.Refused}
	g.Expect(outcomes(p.DryRun)).To(Equal(first))
	g.Expect(h.names()).To(ConsistOf("stale", "theirs"), "a dry run changes nothing")
	g.Expect(outcomes(p.Once)).To(Equal(first))
	g.Expect(h.names()).To(ConsistOf("eu", "changed", "theirs"))
	g.Expect(h.health("eu")()).To(Equal("Healthy (Ready)"))

	version := h.profile("eu").ResourceVersion
	src.put(synthetic(t, "changed", func(s *inventory.Synthetic) { s.Labels = nil }))
	second := map[string]publish.Outcome{"eu": publish.Unchanged, "changed": publish.Updated, "theirs": publish.Refused}
	g.Expect(outcomes(p.DryRun)).To(Equal(second))
	g.Expect(h.profile("changed").Labels).To(HaveKey("tier"))
	g.Expect(outcomes(p.Once)).To(Equal(second))
	g.Expect(h.profile("changed").Labels).NotTo(HaveKey("tier"))
	g.Expect(h.profile("eu").ResourceVersion).To(Equal(version))
}

func TestOnceWithoutSource(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	h.put(own("stale", manager))
	src := newSource()
	src.unsynced = true
	p, err := publish.New(h.options(src, nil))
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = p.Once(ctx)
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(err).To(MatchError(ContainSubstring("the source was not listed")))

	go func() { src.fail <- errors.New("no such file") }()
	_, err = p.Once(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("the source was not listed: no such file")))
	g.Expect(h.names()).To(ConsistOf("stale"))
}

func TestOnceReportsFailures(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	h.Fault(mctest.Forbidden.On("clusterprofiles").For("create"))
	p, err := publish.New(h.options(newSource(synthetic(t, "eu")), nil))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Once(t.Context())).To(ConsistOf(And(HaveField("Outcome", publish.Failed), HaveField("Message", ContainSubstring("forbidden")))))
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*publish.Options)
		err    string
	}{
		{"no hub", func(o *publish.Options) { o.Hub = nil }, "must specify Hub"},
		{"no source", func(o *publish.Options) { o.Source = nil }, "must specify Source"},
		{"no namespace", func(o *publish.Options) { o.Namespace = "" }, "must specify Namespace"},
		{"all namespaces", func(o *publish.Options) { o.Namespace = "*" }, "invalid Namespace"},
		{"no manager", func(o *publish.Options) { o.ManagerName = "" }, "must specify ManagerName"},
		{"a manager that is no label value", func(o *publish.Options) { o.ManagerName = "a b" }, "invalid ManagerName"},
		{"a negative interval", func(o *publish.Options) { o.WriteInterval = -1 }, "WriteInterval must not be negative"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			options := publish.Options{Hub: mctest.New(t).Config(), Source: newSource(), Namespace: "fleet", ManagerName: "kind"}
			tc.change(&options)
			_, err := publish.New(options)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.err)))
		})
	}
}
