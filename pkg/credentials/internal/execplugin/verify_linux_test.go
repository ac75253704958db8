// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

func TestVerifiedFileIsRun(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "plugin")
	// Both end at once, one well and one not.
	install := func(program string) (digest string) {
		found, err := exec.LookPath(program)
		g.Expect(err).NotTo(HaveOccurred())
		content, err := os.ReadFile(found)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(path+"~", content, 0o700)).To(Succeed())
		g.Expect(os.Rename(path+"~", path)).To(Succeed())
		sum := sha256.Sum256(content)
		return hex.EncodeToString(sum[:])
	}
	digest := install("true")
	file, err := openVerified(path, []string{digest})
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	install("false")

	command := exec.CommandContext(t.Context(), path)
	pin(command, file)
	g.Expect(command.Run()).To(Succeed())
	g.Expect(command.Args[0]).To(Equal(path), "the plugin gets its own name")
	g.Expect(exec.CommandContext(t.Context(), path).Run()).NotTo(Succeed())

	_, err = openVerified(path, []string{digest})
	g.Expect(err).To(MatchError(errdefs.ErrDenied))
}
