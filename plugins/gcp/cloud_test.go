// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/plugins/gcp"
)

// If this variable is set, the test binary is the plugin.
const programVariable = "ROLLCALL_GCP"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		plugin.Main(gcp.New())
	}
	goleak.VerifyTestMain(m)
}

const (
	metadataPath = "/computeMetadata/v1/instance/service-accounts/"
	tokenPath    = "/token"
	stsPath      = "/sts"
	iamPath      = "/v1/projects/-/serviceAccounts/"

	robot  = "robot@p1.iam.gserviceaccount.com"
	viewer = "viewer@p1.iam.gserviceaccount.com"
	middle = "middle@p1.iam.gserviceaccount.com"
)

// cloud is a metadata server, a token endpoint, an STS endpoint and an IAM
// Credentials API in one.
type cloud struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey // of robot

	mu       sync.Mutex
	requests []recorded    // guarded by mu
	faults   []fault       // guarded by mu: the next responses
	silent   chan struct{} // guarded by mu, see fallSilent
	once     sync.Once     // closes silent

	expiry time.Time     // of the tokens of IAM
	ended  chan struct{} // closed at the end of the test
}

// recorded is a request that was received.
type recorded struct {
	path   string
	query  string
	header http.Header
	body   string
}

// fault is the response to the next request.
type fault struct {
	status     int
	body       string
	retryAfter string
}

// robotKey is generated once.
var robotKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// newCloud starts the servers and sets the environment for them.
func newCloud(t *testing.T) *cloud {
	t.Helper()
	key, err := robotKey()
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{t: t, key: key, expiry: time.Now().Add(time.Hour).Round(time.Second)}
	c.ended = make(chan struct{})
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(func() {
		close(c.ended)
		c.Close()
	})
	t.Setenv("GCE_METADATA_HOST", c.Listener.Addr().String())
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "")
	t.Setenv("HOME", t.TempDir())
	return c
}

func (c *cloud) failFirst(faults ...fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = faults
}

// fallSilent stops responding to requests. The channel is closed by the first one.
func (c *cloud) fallSilent() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = make(chan struct{})
	return c.silent
}

// to returns the requests for paths with the prefix.
func (c *cloud) to(prefix string) []recorded {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []recorded
	for _, request := range c.requests {
		if strings.HasPrefix(request.path, prefix) {
			found = append(found, request)
		}
	}
	return found
}

func (c *cloud) serve(w http.ResponseWriter, r *http.Request) {
	body := readAll(r)
	c.mu.Lock()
	c.requests = append(c.requests, recorded{path: r.URL.Path, query: r.URL.RawQuery, header: r.Header, body: body})
	var next *fault
	if len(c.faults) > 0 {
		next, c.faults = &c.faults[0], c.faults[1:]
	}
	silent := c.silent
	c.mu.Unlock()
	switch {
	case silent != nil:
		c.once.Do(func() { close(silent) })
		select {
		case <-c.ended:
		case <-r.Context().Done():
		}
		http.NotFound(w, r)
	case next != nil:
		w.Header().Set("Retry-After", next.retryAfter)
		w.WriteHeader(next.status)
		fmt.Fprint(w, next.body)
	case strings.HasPrefix(r.URL.Path, metadataPath):
		c.serveMetadata(w, r)
	case r.URL.Path == tokenPath:
		c.serveToken(w, r)
	case r.URL.Path == stsPath:
		c.serveSTS(w, r)
	case strings.HasPrefix(r.URL.Path, iamPath):
		c.serveIAM(w, r)
	default:
		http.NotFound(w, r)
	}
}

func readAll(r *http.Request) string {
	if err := r.ParseForm(); err == nil && len(r.PostForm) > 0 {
		return r.PostForm.Encode()
	}
	var body strings.Builder
	buffer := make([]byte, 1024)
	for {
		n, err := r.Body.Read(buffer)
		body.Write(buffer[:n])
		if err != nil {
			return body.String()
		}
	}
}

func reply(w http.ResponseWriter, message map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(message)
}

func refuse(w http.ResponseWriter, status int, code, description string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": code, "error_description": description})
}

func (c *cloud) serveMetadata(w http.ResponseWriter, r *http.Request) {
	account := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, metadataPath), "/token")
	if r.Header.Get("Metadata-Flavor") != "Google" || (account != "default" && account != robot) {
		http.NotFound(w, r)
		return
	}
	reply(w, map[string]any{"access_token": "metadata-" + account, "expires_in": 3600, "token_type": "Bearer"})
}

// serveToken accepts assertions signed with robot's key, and refresh tokens.
func (c *cloud) serveToken(w http.ResponseWriter, r *http.Request) {
	if r.PostForm.Get("refresh_token") == "refresh-secret" {
		reply(w, map[string]any{"access_token": "user-token", "expires_in": 3600, "token_type": "Bearer"})
		return
	}
	signed, signature, _ := cutLast(r.PostForm.Get("assertion"), ".")
	digest := sha256.Sum256([]byte(signed))
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || rsa.VerifyPKCS1v15(&c.key.PublicKey, crypto.SHA256, digest[:], raw) != nil {
		refuse(w, http.StatusBadRequest, "invalid_grant", "Invalid JWT Signature.")
		return
	}
	reply(w, map[string]any{"access_token": "key-token", "expires_in": 3600, "token_type": "Bearer"})
}

func (c *cloud) serveSTS(w http.ResponseWriter, r *http.Request) {
	if r.PostForm.Get("subject_token") != "subject-secret" {
		refuse(w, http.StatusBadRequest, "invalid_grant", "The subject token is not known.")
		return
	}
	reply(w, map[string]any{
		"access_token": "sts-token", "expires_in": 3600, "token_type": "Bearer",
		"issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
	})
}

func (c *cloud) serveIAM(w http.ResponseWriter, r *http.Request) {
	account, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, iamPath), ":")
	if method != "generateAccessToken" || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		http.NotFound(w, r)
		return
	}
	reply(w, map[string]any{"accessToken": "token-of-" + account, "expireTime": c.expiry.UTC().Format(time.RFC3339)})
}

func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}

// use writes a credentials file and sets the environment for it.
func (c *cloud) use(file map[string]any) (path string) {
	c.t.Helper()
	data, err := json.Marshal(file)
	if err != nil {
		c.t.Fatal(err)
	}
	path = filepath.Join(c.t.TempDir(), "credentials.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
	return path
}

func (c *cloud) serviceAccountKey() map[string]any {
	return map[string]any{
		"type": "service_account", "client_email": robot, "private_key_id": "k1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{
			Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(c.key),
		})),
		"token_uri": c.URL + tokenPath,
	}
}

func (c *cloud) authorizedUser() map[string]any {
	return map[string]any{
		"type": "authorized_user", "client_id": "id", "client_secret": "client-secret", "refresh_token": "refresh-secret",
		"token_uri": c.URL + tokenPath, "quota_project_id": "p7",
	}
}

func (c *cloud) externalAccount(subject string) map[string]any {
	path := filepath.Join(c.t.TempDir(), "subject")
	if err := os.WriteFile(path, []byte(subject), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return map[string]any{
		"type":               "external_account",
		"audience":           "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/p",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
		"token_url":          c.URL + stsPath,
		"credential_source":  map[string]any{"file": path},
	}
}

func (c *cloud) impersonated(source map[string]any) map[string]any {
	return map[string]any{
		"type":                              "impersonated_service_account",
		"service_account_impersonation_url": c.URL + iamPath + viewer + ":generateAccessToken",
		"delegates":                         []string{"projects/-/serviceAccounts/" + middle},
		"source_credentials":                source,
	}
}
