// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

// countingManager is a manager that counts what is added to its local manager.
type countingManager struct {
	mcmanager.Manager
	local *countingLocal
}

func (c countingManager) GetLocalManager() manager.Manager { return c.local }

type countingLocal struct {
	manager.Manager
	err   error // of Add
	added int
}

func (c *countingLocal) Add(r manager.Runnable) error {
	if c.err != nil {
		return c.err
	}
	c.added++
	return c.Manager.Add(r)
}

func TestSetupWithManagerOnce(t *testing.T) {
	g := NewWithT(t)
	provider, err := New(Options{KubeconfigStrategyOption: kubeconfigstrategy.Option{
		Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "test"},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := mcmanager.New(mctest.New(t).Config(), provider, mcmanager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	g.Expect(err).NotTo(HaveOccurred())
	local := &countingLocal{Manager: mgr.GetLocalManager(), err: errors.New("the manager has stopped")}
	counting := countingManager{mgr, local}

	g.Expect(provider.SetupWithManager(counting)).To(MatchError(And(ContainSubstring("cannot be set up"), ContainSubstring("stopped"))))
	err = provider.Start(t.Context(), counting)
	g.Expect(multicluster.IsTerminal(err)).To(BeTrue(), "a retry does not help")
	g.Expect(err).To(MatchError(ContainSubstring("cannot be set up")))

	local.err = nil
	g.Expect(provider.SetupWithManager(counting)).To(Succeed())
	g.Expect(provider.SetupWithManager(counting)).To(Succeed())
	g.Expect(local.added).To(Equal(1))
}

// Every field of fleet.ConnectionOptions reaches the fleet, also one added later.
func TestConnectionOptionsArePassedOn(t *testing.T) {
	opts := Options{}
	fill(reflect.ValueOf(&opts.Connection).Elem())
	connection, err := opts.connection()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for field, got := range reflect.ValueOf(connection).Fields() {
		t.Run(field.Name, func(t *testing.T) {
			want := reflect.ValueOf(opts.Connection).FieldByIndex(field.Index)
			NewWithT(t).Expect(want.IsZero()).To(BeFalse())
			NewWithT(t).Expect(describe(got)).To(Equal(describe(want)))
		})
	}
}

// fill sets the fields of a struct to values other than zero.
func fill(v reflect.Value) {
	for _, field := range v.Fields() {
		switch field.Kind() {
		case reflect.Struct:
			fill(field)
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		case reflect.Func:
			field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value { return nil }))
		case reflect.Interface:
			field.Set(reflect.ValueOf(testclock.NewFakeClock(time.Time{})))
		case reflect.Bool:
			field.SetBool(true)
		case reflect.String:
			field.SetString("set")
		case reflect.Int, reflect.Int64:
			field.SetInt(7)
		case reflect.Float32:
			field.SetFloat(7)
		default:
			panic("fill does not support fields of type " + field.Type().String())
		}
	}
}

// describe describes a value so that functions can be compared.
func describe(v reflect.Value) string {
	return fmt.Sprintf("%#v", v.Interface())
}

func TestClusterOptionsOrder(t *testing.T) {
	g := NewWithT(t)
	var calls []string
	option := func(call string) []cluster.Option {
		return []cluster.Option{func(*cluster.Options) { calls = append(calls, call) }}
	}
	opts := Options{ClusterOptions: option("top level"), Connection: fleet.ConnectionOptions{ClusterOptions: option("connection")}}
	connection, err := opts.connection()
	g.Expect(err).NotTo(HaveOccurred())
	for _, apply := range connection.ClusterOptions {
		apply(&cluster.Options{})
	}
	g.Expect(calls).To(Equal([]string{"top level", "connection"}))
}

func TestNewClusterTwice(t *testing.T) {
	newCluster := func(context.Context, *inventory.Profile, *rest.Config, ...cluster.Option) (cluster.Cluster, error) {
		return nil, nil
	}
	_, err := New(Options{
		Credentials: &credentials.Resolver{}, NewCluster: newCluster,
		Connection: fleet.ConnectionOptions{NewCluster: newCluster},
	})
	NewWithT(t).Expect(err).To(MatchError(And(
		ContainSubstring("Options.NewCluster"), ContainSubstring("Options.Connection.NewCluster"))))
}
