// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/register"
)

// The hub and the members, shared by all tests; see planes.
var (
	hub        *realfleet.Hub
	east, west *realfleet.ControlPlane
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		errStart = startPlanes(assets)
	}
	code := m.Run()
	stopPlanes()
	os.Exit(code)
}

var (
	errStart  error
	running   []*realfleet.ControlPlane
	planesDir string
	crd       string // path of the CRD of ClusterProfiles
)

// planes skips the test if there are no control planes.
func planes(t *testing.T) {
	t.Helper()
	switch {
	case os.Getenv("KUBEBUILDER_ASSETS") == "":
		t.Skip("no real control planes, because KUBEBUILDER_ASSETS is not set; use make test")
	case errStart != nil:
		t.Fatal("cannot start the control planes: ", errStart)
	}
}

func startPlanes(assets string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var err error
	if planesDir, err = os.MkdirTemp("", "register"); err != nil {
		return err
	}
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api").Output()
	if err != nil {
		return err
	}
	var hubPlane *realfleet.ControlPlane
	var group errgroup.Group
	for name, plane := range map[string]**realfleet.ControlPlane{"hub": &hubPlane, "east": &east, "west": &west} {
		group.Go(func() (err error) {
			*plane, err = realfleet.StartControlPlane(ctx, name, assets, planesDir)
			return err
		})
	}
	err = group.Wait()
	for _, plane := range []*realfleet.ControlPlane{hubPlane, east, west} {
		if plane != nil {
			running = append(running, plane)
		}
	}
	if err != nil {
		return err
	}
	crd = filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "bases", "multicluster.x-k8s.io_clusterprofiles.yaml")
	hub, err = realfleet.NewHub(ctx, hubPlane, crd)
	return err
}

func stopPlanes() {
	for _, plane := range running {
		if err := plane.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	_ = os.RemoveAll(planesDir)
}

var rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}

var namespaces atomic.Int32

// options returns those of a registration in an inventory of its own.
func options(t *testing.T, member *realfleet.ControlPlane) register.Options {
	t.Helper()
	planes(t)
	name := fmt.Sprintf("inventory-%d", namespaces.Add(1))
	if err := hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	return register.Options{
		Hub: hub.Config, Namespace: name, Name: "c1", Member: member.Config,
		Rules: rules, MemberNamespace: name, // a namespace is never gone without a controller
	}
}

func mustRegister(t *testing.T, o register.Options) *register.Result {
	t.Helper()
	result, err := register.Register(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func profileOf(t *testing.T, o register.Options) *inventory.Profile {
	t.Helper()
	profile := &inventory.Profile{}
	if err := hub.Client.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, profile); err != nil {
		t.Fatal(err)
	}
	return profile
}

func secretOf(t *testing.T, o register.Options) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	namespace := o.SecretNamespace
	if namespace == "" {
		namespace = o.Namespace
	}
	if err := hub.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: o.Namespace + "." + o.Name}, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// objects returns the kinds and names of all objects of the registration, in both
// clusters, and their labels' value.
func objects(t *testing.T, o register.Options) []string {
	t.Helper()
	var found []string
	for cluster, c := range map[string]client.Client{"hub": hub.Client, "east": east.Client, "west": west.Client} {
		for _, list := range []client.ObjectList{
			&corev1.SecretList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
			&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
		} {
			if err := c.List(t.Context(), list, client.HasLabels{register.LabelRegistration}); err != nil {
				t.Fatal(err)
			}
			eachItem(t, list, func(object client.Object) {
				if object.GetAnnotations()[register.AnnotationRegistered] == o.Namespace+"/"+o.Name {
					found = append(found, fmt.Sprintf("%s %T %s", cluster, object, object.GetName()))
				}
			})
		}
	}
	return found
}

// allowed returns the status of a request for ConfigMaps with the token.
func allowed(t *testing.T, member *realfleet.ControlPlane, token string) int {
	t.Helper()
	trimmed := *member
	trimmed.Config = rest.CopyConfig(member.Config)
	trimmed.Config.Host = strings.TrimRight(member.Config.Host, "/")
	status, err := (&realfleet.Member{ControlPlane: &trimmed}).Status(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// errInjected is the failure of failAfter.
var errInjected = errors.New("injected failure")

// failAfter returns a configuration with which only so many requests that write
// something get through, of those that all configurations with this counter send.
func failAfter(config *rest.Config, left *atomic.Int32) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if writes(request) && left.Add(-1) < 0 {
				return nil, errInjected
			}
			return next.RoundTrip(request)
		})
	})
	return config
}

func writes(request *http.Request) bool {
	return request.Method != http.MethodGet && !strings.Contains(request.URL.Path, "selfsubjectreviews") &&
		!request.URL.Query().Has("dryRun")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func haveActions(action register.Action) func([]register.Change) bool {
	return func(changes []register.Change) bool {
		for _, change := range changes {
			if change.Action != action {
				return false
			}
		}
		return len(changes) > 0
	}
}

// redirecting returns the URL of a server that redirects all requests, and its
// certificate authority.
func redirecting(t *testing.T) (server string, ca []byte) {
	t.Helper()
	s := httptest.NewTLSServer(http.RedirectHandler("https://127.0.0.1:1/", http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// expired returns the token with another expiry. Its signature is wrong.
func expired(token string) string {
	parts := strings.Split(token, ".")
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	claims := map[string]any{}
	_ = json.Unmarshal(payload, &claims)
	claims["iat"], claims["exp"] = 1, 2
	payload, _ = json.Marshal(claims)
	parts[1] = base64.RawURLEncoding.EncodeToString(payload)
	return strings.Join(parts, ".")
}
