// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
)

// configured is a cluster with a config only.
type configured struct {
	cluster.Cluster
	config *rest.Config
}

func (c *configured) GetConfig() *rest.Config { return c.config }

// roundTripper is a transport of a type that is not comparable.
type roundTripper []string

func (roundTripper) RoundTrip(*http.Request) (*http.Response, error) { return nil, errFake }

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func refuse(*http.Request) (*http.Response, error) { return nil, errFake }

func noWrap(rt http.RoundTripper) http.RoundTripper { return rt }

func execConfig(arg string) *clientcmdapi.ExecConfig {
	return &clientcmdapi.ExecConfig{
		Command: "plugin", Args: []string{arg},
		Config: &runtime.Unknown{Raw: []byte(`{"clusterName":"c9"}`)},
	}
}

func TestEqualClusters(t *testing.T) {
	limiter := flowcontrol.NewFakeAlwaysRateLimiter()
	for _, tc := range []struct {
		name  string
		a, b  *rest.Config
		equal bool
	}{
		{name: "empty configs", a: &rest.Config{}, b: &rest.Config{}, equal: true},
		{name: "no config and none", equal: true},
		{name: "a config and none", a: &rest.Config{}},
		{name: "the same host", a: &rest.Config{Host: "a"}, b: &rest.Config{Host: "a"}, equal: true},
		{name: "another host", a: &rest.Config{Host: "a"}, b: &rest.Config{Host: "b"}},
		{name: "another token", a: &rest.Config{BearerToken: "a"}, b: &rest.Config{BearerToken: "b"}},
		{
			name:  "the same certificates, read twice",
			a:     &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}},
			b:     &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}},
			equal: true,
		},
		{
			name: "another certificate authority",
			a:    &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}},
			b:    &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: []byte("new")}},
		},
		{
			name:  "the same plugin, read twice",
			a:     &rest.Config{ExecProvider: execConfig("a")},
			b:     &rest.Config{ExecProvider: execConfig("a")},
			equal: true,
		},
		{
			name: "a plugin with another argument",
			a:    &rest.Config{ExecProvider: execConfig("a")},
			b:    &rest.Config{ExecProvider: execConfig("b")},
		},
		{name: "a function and none", a: &rest.Config{WrapTransport: noWrap}, b: &rest.Config{}},
		{name: "functions, which cannot be compared", a: &rest.Config{WrapTransport: noWrap}, b: &rest.Config{WrapTransport: noWrap}},
		{
			name:  "the same transport",
			a:     &rest.Config{Transport: http.DefaultTransport},
			b:     &rest.Config{Transport: http.DefaultTransport},
			equal: true,
		},
		{name: "another transport", a: &rest.Config{Transport: &http.Transport{}}, b: &rest.Config{Transport: &http.Transport{}}},
		{name: "a transport of another type", a: &rest.Config{Transport: &http.Transport{}}, b: &rest.Config{Transport: roundTripper{}}},
		{name: "transports that do not share their data", a: &rest.Config{Transport: roundTripper{"a"}}, b: &rest.Config{Transport: roundTripper{"a"}}},
		{
			name: "functions as transports",
			a:    &rest.Config{Transport: roundTripperFunc(refuse)},
			b:    &rest.Config{Transport: roundTripperFunc(refuse)},
		},
		{
			name:  "the same rate limiter",
			a:     &rest.Config{RateLimiter: limiter},
			b:     &rest.Config{RateLimiter: limiter},
			equal: true,
		},
		{
			name:  "another warning handler",
			a:     &rest.Config{WarningHandler: rest.NewWarningWriter(nil, rest.WarningWriterOptions{})},
			b:     &rest.Config{WarningHandler: rest.NewWarningWriter(nil, rest.WarningWriterOptions{})},
			equal: true,
		},
		{
			name:  "another contextual warning handler",
			a:     &rest.Config{WarningHandlerWithContext: rest.WarningLogger{}},
			b:     &rest.Config{},
			equal: true,
		},
		{
			name:  "the same codecs, which are structs with slices",
			a:     &rest.Config{ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()}},
			b:     &rest.Config{ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()}},
			equal: true,
		},
		{
			name: "another rate limiter",
			a:    &rest.Config{RateLimiter: flowcontrol.NewTokenBucketRateLimiter(1, 1)},
			b:    &rest.Config{RateLimiter: flowcontrol.NewTokenBucketRateLimiter(1, 1)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			a, b := &configured{config: tc.a}, &configured{config: tc.b}
			g.Expect(clusters.EqualClusters(a, b)).To(Equal(tc.equal))
			g.Expect(clusters.EqualClusters(b, a)).To(Equal(tc.equal), "in reverse order")
			g.Expect(clusters.EqualClusters(a, a)).To(BeTrue(), "identical")
			g.Expect(clusters.EqualClusters[cluster.Cluster](a, b)).To(Equal(tc.equal), "as interfaces")
		})
	}
}

func TestEqualClustersNil(t *testing.T) {
	g := NewWithT(t)
	some := &configured{}
	g.Expect(clusters.EqualClusters[cluster.Cluster](nil, nil)).To(BeTrue())
	g.Expect(clusters.EqualClusters[cluster.Cluster](nil, some)).To(BeFalse())
	g.Expect(clusters.EqualClusters[cluster.Cluster](some, nil)).To(BeFalse())
	g.Expect(clusters.EqualClusters[*configured](nil, nil)).To(BeTrue())
	g.Expect(clusters.EqualClusters(nil, some)).To(BeFalse())
}

// No field of a config may be missing but the warning handlers, not even one that a
// later version of client-go adds.
func TestEqualClustersComparesEveryField(t *testing.T) {
	full := func() *rest.Config {
		return &rest.Config{
			AuthConfigPersister: nil,
			ContentConfig: rest.ContentConfig{
				GroupVersion:         &schema.GroupVersion{Group: "example.com"},
				NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
			},
			AuthProvider:    &clientcmdapi.AuthProviderConfig{Name: "any"},
			ExecProvider:    execConfig("any"),
			Transport:       &http.Transport{},
			RateLimiter:     flowcontrol.NewTokenBucketRateLimiter(1, 1),
			Impersonate:     rest.ImpersonationConfig{Groups: []string{"any"}, Extra: map[string][]string{"any": nil}},
			TLSClientConfig: rest.TLSClientConfig{NextProtos: []string{"any"}, CertData: []byte{1}, KeyData: []byte{1}, CAData: []byte{1}},
		}
	}
	other := full()
	other.AuthConfigPersister = persister{}
	other.WrapTransport = noWrap
	other.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errFake }
	other.Proxy = func(*http.Request) (*url.URL, error) { return nil, errFake }
	eachField(reflect.ValueOf(other).Elem(), "Config", func(path string, set func(*rest.Config)) {
		if strings.Contains(path, ".WarningHandler") {
			return
		}
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			a := full()
			b := *a
			g.Expect(clusters.EqualClusters(&configured{config: a}, &configured{config: &b})).To(BeTrue())
			set(&b)
			g.Expect(clusters.EqualClusters(&configured{config: a}, &configured{config: &b})).To(BeFalse())
		})
	})
}

type persister struct{}

func (persister) Persist(map[string]string) error { return nil }

// eachField visits the fields of a config, with a function that sets the field
// of another config to something else.
func eachField(v reflect.Value, path string, visit func(string, func(*rest.Config)), index ...int) {
	for i := range v.NumField() {
		field, at := v.Field(i), append(append([]int(nil), index...), i)
		path := path + "." + v.Type().Field(i).Name
		if field.Kind() == reflect.Struct {
			eachField(field, path, visit, at...)
			continue
		}
		visit(path, func(config *rest.Config) {
			target := reflect.ValueOf(config).Elem().FieldByIndex(at)
			switch field.Kind() {
			case reflect.String:
				target.SetString("other")
			case reflect.Bool:
				target.SetBool(true)
			case reflect.Int, reflect.Int64:
				target.SetInt(1)
			case reflect.Float32:
				target.SetFloat(1)
			default:
				if !target.IsZero() {
					target.SetZero()
					return
				}
				if field.IsZero() {
					panic(fmt.Sprintf("%s: the test cannot change a %v", path, field.Type()))
				}
				target.Set(field)
			}
		})
	}
}
