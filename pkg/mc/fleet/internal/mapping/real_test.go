// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// TestRealAPIServer compares all mappings of a kube-apiserver with
// those of controller-runtime's mapper.
func TestRealAPIServer(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set")
	}
	g := NewWithT(t)
	environment := &envtest.Environment{BinaryAssetsDirectory: assets}
	config, err := environment.Start()
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(environment.Stop()).To(Succeed()) }()
	client, err := rest.HTTPClientFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	defer client.CloseIdleConnections()
	discovering, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	g.Expect(err).NotTo(HaveOccurred())
	_, lists, err := discovering.ServerGroupsAndResources()
	g.Expect(err).NotTo(HaveOccurred())

	ours, err := New(config, client)
	g.Expect(err).NotTo(HaveOccurred())
	theirs, err := apiutil.NewDynamicRESTMapper(config, client)
	g.Expect(err).NotTo(HaveOccurred())
	answers := func(m meta.RESTMapper, gv schema.GroupVersion, kind, resource string) []any {
		mapping, err := m.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: kind}, gv.Version)
		preferred, preferredErr := m.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: kind})
		found, foundErr := m.KindFor(gv.WithResource(resource))
		return []any{values(mapping), err, values(preferred), preferredErr, found, foundErr}
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		g.Expect(err).NotTo(HaveOccurred())
		for _, r := range list.APIResources {
			_ = answers(theirs, gv, r.Kind, r.Name) // Its first error may differ from later ones.
			g.Expect(answers(ours, gv, r.Kind, r.Name)).To(Equal(answers(theirs, gv, r.Kind, r.Name)), "%s %s", gv, r.Name)
		}
	}
}
