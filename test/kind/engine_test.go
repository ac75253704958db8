// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// variable has to be set for the tests to run: they create containers.
const variable = "ROLLCALL_TEST_KIND"

// dockerFails runs docker, and returns its output and error.
func dockerFails(ctx context.Context, stdin io.Reader, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "docker", arguments...)
	command.Stdin = stdin
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("docker %s: %w: %s", strings.Join(arguments, " "), err, bytes.TrimSpace(output))
	}
	return strings.TrimSpace(string(output)), err
}

// docker runs docker, and returns its output.
func docker(t *testing.T, stdin io.Reader, arguments ...string) string {
	t.Helper()
	output, err := dockerFails(t.Context(), stdin, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// needEngine skips the test if there is no Docker engine.
func needEngine(t *testing.T) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip("creates containers in a Docker engine: run make test-kind")
	}
	t.Setenv("KIND_EXPERIMENTAL_PROVIDER", "docker")
	if _, err := dockerFails(t.Context(), nil, "version"); err != nil {
		t.Skip("no Docker engine responds:", err)
	}
}

// build builds programs of this module, and returns the folder that has them.
func build(t *testing.T, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", append([]string{"build", "-trimpath", "-o", dir + "/"}, packages...)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, output)
	}
	return dir
}

// importImage makes an image of nodes from local files. It is removed at the end.
func importImage(t *testing.T) string {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS must be set: run make test-kind")
	}
	node := filepath.Join(build(t, "./node"), "node")
	reader, writer := io.Pipe()
	go func() {
		archive := newArchive(writer)
		archive.copy("bin/node", node)
		archive.copy("bin/cat", node)
		archive.copy("bin/etcd", filepath.Join(assets, "etcd"))
		archive.copy("bin/kube-apiserver", filepath.Join(assets, "kube-apiserver"))
		archive.add("tmp/.keep", 0o600, nil)
		writer.CloseWithError(archive.close())
	}()
	image := fmt.Sprintf("rollcall-test-kind:%d", os.Getpid())
	docker(t, reader, "import", "--change", "ENV PATH=/bin", "--change", `ENTRYPOINT ["/bin/node"]`, "-", image)
	t.Cleanup(func() {
		if _, err := dockerFails(context.Background(), nil, "rmi", "-f", image); err != nil {
			t.Error(err)
		}
	})
	return image
}

// archive writes a tar file. It keeps the first error.
type archive struct {
	writer *tar.Writer
	err    error
}

func newArchive(w io.Writer) *archive { return &archive{writer: tar.NewWriter(w)} }

// add adds a file.
func (a *archive) add(name string, mode int64, content []byte) {
	a.header(name, mode, int64(len(content)))
	if a.err == nil {
		_, a.err = a.writer.Write(content)
	}
}

func (a *archive) header(name string, mode, size int64) {
	if a.err == nil {
		a.err = a.writer.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: size, ModTime: time.Now()})
	}
}

// copy adds a program.
func (a *archive) copy(name, path string) {
	if a.err != nil {
		return
	}
	file, err := os.Open(path)
	if err != nil {
		a.err = err
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		a.err = err
		return
	}
	if a.header(name, 0o755, info.Size()); a.err == nil {
		_, a.err = io.Copy(a.writer, file)
	}
}

func (a *archive) close() error {
	if a.err != nil {
		return a.err
	}
	return a.writer.Close()
}
