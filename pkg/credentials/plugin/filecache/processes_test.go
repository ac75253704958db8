// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package filecache_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/filecache"
)

// If this variable is set, the test binary is a program that gets the credential
// for a key and prints the token. The arguments are the folder, the key, and the
// address of the issuer.
const programVariable = "FILECACHE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		program(os.Args[1], os.Args[2], os.Args[3])
		return
	}
	goleak.VerifyTestMain(m)
}

func program(dir, key, address string) {
	cache := &filecache.Cache{Dir: dir}
	credential, err := cache.Get(context.Background(), key, func(context.Context) (*plugin.Credential, error) {
		response, err := http.Get(address + "/" + key)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		var token bytes.Buffer
		if _, err := token.ReadFrom(response.Body); err != nil {
			return nil, err
		}
		return &plugin.Credential{Token: token.String(), Expiry: time.Now().Add(time.Hour)}, nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(credential.Token)
}

// server issues a new token for each request, and counts them by path.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	issued map[string]int
}

func newServer(t *testing.T) *server {
	s := &server{issued: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.issued[r.URL.Path]++
		n := s.issued[r.URL.Path]
		s.mu.Unlock()
		fmt.Fprintf(w, "token %d of %s", n, strings.Trim(r.URL.Path, "/"))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestManyProcesses(t *testing.T) {
	const keys, each = 5, 40
	g := NewWithT(t)
	s := newServer(t)
	dir := t.TempDir()
	var group sync.WaitGroup
	outputs := make([]string, keys*each)
	for n := range outputs {
		group.Go(func() {
			command := exec.CommandContext(t.Context(), os.Args[0], dir, fmt.Sprint("k", n%keys), s.URL)
			command.Env = append(os.Environ(), programVariable+"=1", "GORACE=atexit_sleep_ms=0")
			output, err := command.CombinedOutput()
			outputs[n] = string(output)
			if err != nil {
				t.Errorf("%s: %s", err, output)
			}
		})
	}
	group.Wait()
	for n, output := range outputs {
		g.Expect(output).To(Equal(fmt.Sprint("token 1 of k", n%keys)))
	}
	g.Expect(s.issued).To(HaveLen(keys))
	for path, n := range s.issued {
		g.Expect(n).To(Equal(1), path)
	}
}

func TestConcurrentExpiry(t *testing.T) {
	// Entries are continuously stored, returned, swept and stored again.
	cache := &filecache.Cache{Dir: t.TempDir()}
	var group sync.WaitGroup
	for n := range 16 {
		group.Go(func() {
			for range 30 {
				key := fmt.Sprint(n % 4)
				credential, err := cache.Get(t.Context(), key, func(context.Context) (*plugin.Credential, error) {
					return &plugin.Credential{Token: key, Expiry: time.Now().Add(2 * time.Millisecond)}, nil
				})
				if err != nil || credential.Token != key {
					t.Errorf("key %s: %v, %v", key, credential, err)
				}
			}
		})
	}
	group.Wait()
}
