// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// TestInformersConverge writes to many clusters while faults come and go at
// random. Afterwards, each informer must hold the objects of its cluster.
func TestInformersConverge(t *testing.T) {
	const (
		clusters = 20
		writes   = 40
	)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	f := mctest.NewFleet(t, clusters, mctest.Options{History: 16})
	faults := []mctest.Fault{
		mctest.Hang, mctest.Freeze, mctest.Refuse, mctest.Reset, mctest.Expired, mctest.Unavailable,
		mctest.Hang.For("watch"), mctest.Forbidden.On("configmaps"), mctest.Slow(10 * time.Millisecond),
	}
	stores := make([]cache.Store, clusters)
	for i, c := range f.Clusters() {
		informer, _ := newInformer(t, kubernetes.NewForConfigOrDie(c.Config()))
		stores[i] = informer.GetStore()
	}
	var writers sync.WaitGroup
	for i, c := range f.Clusters() {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for range writes {
				if random.IntN(5) == 0 {
					c.Clear()
					c.Fault(faults[random.IntN(len(faults))])
					// A fault takes a moment to have effects.
					time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
				}
				if err := disturb(c, random); err != nil {
					t.Error(err)
					return
				}
			}
			c.Clear()
		})
	}
	writers.Wait()
	for i, c := range f.Clusters() {
		NewWithT(t).Eventually(func() map[string]string { return held(stores[i]) }).
			WithTimeout(time.Minute).Should(Equal(stored(t, c)), c.Name())
	}
}

// disturb writes or deletes an object, closes connections or compacts history.
func disturb(c *mctest.Cluster, random *rand.Rand) error {
	name := fmt.Sprintf("cm-%d", random.IntN(5))
	cm := newConfigMap(name)
	switch random.IntN(8) {
	case 0:
		return client.IgnoreNotFound(c.Delete(cm))
	case 1:
		c.CloseConnections()
		return nil
	case 2:
		c.Compact()
		return nil
	}
	err := c.Create(cm)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := c.Get(client.ObjectKeyFromObject(cm), cm); err != nil {
		return err
	}
	cm.Data = map[string]string{"n": fmt.Sprint(random.Int())}
	return c.Update(cm)
}

func held(store cache.Store) map[string]string {
	out := map[string]string{}
	for _, object := range store.List() {
		cm := object.(*corev1.ConfigMap)
		out[cm.Name] = cm.ResourceVersion
	}
	return out
}

func stored(t *testing.T, c *mctest.Cluster) map[string]string {
	t.Helper()
	var list corev1.ConfigMapList
	if err := c.List(&list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, cm := range list.Items {
		out[cm.Name] = cm.ResourceVersion
	}
	return out
}
