// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestLoggedError(t *testing.T) {
	g := NewWithT(t)
	var last loggedError
	logger := log.FromContext(last.into(log.IntoContext(t.Context(), funcr.New(func(_, _ string) {}, funcr.Options{}))))
	g.Expect(last.suffix()).To(BeEmpty())
	logger.WithName("source").Info("Reading", "source", "x")
	g.Expect(last.suffix()).To(BeEmpty())
	logger.Info("Cannot list, keeping the clusters as they are", "error", "no engine")
	g.Expect(last.suffix()).To(Equal(": Cannot list, keeping the clusters as they are: no engine"))
	logger.WithValues("a", "b").Error(errors.New("refused"), "Cannot watch")
	g.Expect(last.suffix()).To(Equal(": Cannot watch: refused"))
}
