// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

const docs = "../../docs"

func page(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestDocsNameEveryField(t *testing.T) {
	reference := page(t, docs, "credentials.md")
	for _, kind := range []reflect.Type{reflect.TypeFor[providerfile.Provider](), reflect.TypeFor[providerfile.Extensions](), reflect.TypeFor[clientcmdapi.ExecConfig]()} {
		for field := range kind.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && name != "-" && !strings.Contains(reference, "| `"+name+"` |") {
				t.Errorf("docs/credentials.md does not explain %s", name)
			}
		}
	}
}

func TestDocsNameEveryMetric(t *testing.T) {
	reference := page(t, docs, "credentials.md")
	var collector prometheus.Collector = credentials.Metrics
	descriptions := make(chan *prometheus.Desc, 100)
	collector.Describe(descriptions)
	close(descriptions)
	found := 0
	for description := range descriptions {
		name := regexp.MustCompile(`fqName: "([^"]*)"`).FindStringSubmatch(description.String())[1]
		found++
		if !strings.Contains(reference, "| `"+name+"` |") {
			t.Errorf("docs/credentials.md does not explain %s", name)
		}
	}
	if found == 0 {
		t.Error("there are no metrics")
	}
	if err := ctrlmetrics.Registry.Register(collector); err == nil {
		t.Error("the metrics are not in controller-runtime's registry")
	}
}

func TestThreatModelLinks(t *testing.T) {
	model := page(t, docs, "threat-model.md")
	links := regexp.MustCompile(`\[((?:Test|Fuzz)\w+)\]\(([^)]*)\)`).FindAllStringSubmatch(model, -1)
	if len(links) < 30 {
		t.Errorf("only %d claims are shown by tests", len(links))
	}
	for _, link := range links {
		if !strings.Contains(page(t, docs, link[2]), "\nfunc "+link[1]+"(") {
			t.Errorf("there is no %s in %s", link[1], link[2])
		}
	}
}
