// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestProtobufOnly(t *testing.T) {
	g := NewWithT(t)
	config := mctest.New(t).Config()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	configMaps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	cm := newConfigMap("a")
	cm.Data = map[string]string{"k": "v"}
	created, err := configMaps.Create(t.Context(), cm, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(created.Data).To(HaveKeyWithValue("k", "v"))
	created.Data["k"] = "w"
	_, err = configMaps.Update(t.Context(), created, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	list, err := configMaps.List(t.Context(), metav1.ListOptions{Limit: 1})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(HaveLen(1))
	g.Expect(list.Items[0].Data).To(HaveKeyWithValue("k", "w"))
	g.Expect(list.ResourceVersion).NotTo(BeEmpty())
	g.Expect(configMaps.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(created.UID))})).To(Succeed())
}
