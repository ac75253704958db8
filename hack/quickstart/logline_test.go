// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

const engagedLine = `{"level":"info","ts":"2026-11-20T16:24:21Z","msg":"Cluster engaged","cluster":"fleet/asia","server":"https://127.0.0.1:6443","accessProvider":"token-secret","duration":0.045}`

func TestLogLines(t *testing.T) {
	g := NewWithT(t)
	g.Expect(logs(engaged, "fleet/asia")(engagedLine)).To(BeTrue())
	g.Expect(logs(engaged, "fleet/europe")(engagedLine)).To(BeFalse())
	g.Expect(logs(disengaged, "fleet/asia")(engagedLine)).To(BeFalse())
	g.Expect(logs("", "")("ConfigMap")).To(BeFalse())

	g.Expect(shorten(engagedLine, "cluster", "accessProvider", "error")).To(Equal("Cluster engaged cluster=fleet/asia accessProvider=token-secret"))
	g.Expect(shorten(engagedLine)).To(Equal("Cluster engaged accessProvider=token-secret cluster=fleet/asia duration=0.045 server=https://127.0.0.1:6443"))
	g.Expect(shorten("panic: no")).To(Equal("panic: no"))
}

func TestListLines(t *testing.T) {
	g := NewWithT(t)
	network, err := realfleet.NewForwarder("127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer network.Close()
	member := &realfleet.Member{Network: network}
	for _, tc := range []struct {
		name, url string
		want      bool
	}{
		{"a list", "/api/v1/configmaps?limit=500&resourceVersion=0", true},
		{"a watch that begins with a list", "/api/v1/configmaps?sendInitialEvents=true&watch=true", true},
		{"a watch", "/api/v1/configmaps?resourceVersion=5&watch=true", false},
		{"the resource version", "/api/v1/configmaps?limit=1", false},
		{"another resource", "/api/v1/secrets", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			for _, line := range []string{`{"msg":"Request","curlCommand":"curl -v -XGET '%s'\n"}`, `{"msg":"Response","verb":"GET","url":"%s"}`, `"Request" verb="GET" url="%s"`} {
				g.Expect(listsConfigMaps(member)(fmt.Sprintf(line, "https://"+network.Addr()+tc.url))).To(Equal(tc.want), line)
				g.Expect(listsConfigMaps(member)(fmt.Sprintf(line, "https://127.0.0.1:1"+tc.url))).To(BeFalse(), line)
			}
		})
	}
}

func TestLastLines(t *testing.T) {
	verbose := []string{
		`{"level":"debug","msg":"Starting EventSource"}`,
		`{"level":"Level(-5)","msg":"Reconciling"}`,
		`I1120 16:24:21.313196   20133 round_trippers.go:632] "Response" headers=<`,
		"\tCache-Control: public",
		" >",
		"",
	}
	failure := `{"level":"error","msg":"Reconciler error"}`
	refusal := `E1120 16:24:21.313196   20133 reflector.go:227] "Failed to watch"`

	for _, tc := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"an empty log", nil, nil},
		{"without lines of raised verbosity",
			slices.Concat(verbose, []string{engagedLine}, verbose, []string{failure, refusal}, verbose),
			[]string{engagedLine, failure, refusal}},
		{"at most twelve lines",
			append(slices.Repeat([]string{failure}, 20), engagedLine),
			append(slices.Repeat([]string{failure}, 11), engagedLine)},
		{"the beginning of a panic",
			slices.Concat([]string{failure}, verbose, []string{"panic: no", "", "goroutine 1 [running]:", "main.main()", "\tmain.go:7"}),
			[]string{"panic: no", "", "goroutine 1 [running]:", "main.main()", "\tmain.go:7"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(lastLines(tc.lines)).To(Equal(tc.want))
		})
	}
}
