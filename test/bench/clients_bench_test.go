// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

var knownProfiles = flag.Int("known-profiles", fullClients.known, "number of profiles of BenchmarkClients")

// clientsSize is how much BenchmarkClients measures.
type clientsSize struct {
	known  int // profiles
	warm   int // of these, clusters with a client in use
	byHand int // other clusters, for clients made by hand; not more than warm
	calls  int // to each of some warm clusters
}

var (
	fullClients     = clientsSize{known: 10_000, warm: 200, byHand: 50, calls: 20}
	smallestClients = clientsSize{known: 20, warm: 5, byHand: 2, calls: 2}
)

// BenchmarkClients compares clients for named profiles with a client that is made by
// hand for each call. It runs once, whatever -benchtime is, and prints the table.
func BenchmarkClients(b *testing.B) {
	s := fullClients
	s.known = max(*knownProfiles, s.warm)
	measureClients(b, smallestClients) // to warm up
	began := time.Now()
	rows := measureClients(b, s)
	publish(b, fmt.Sprintf("%d profiles known, %d clusters in use; %d cores, %s; %.0f s",
		s.known, s.warm, runtime.NumCPU(), runtime.Version(), time.Since(began).Seconds()), table("by hand", "clients", rows))
}

func TestClientsExperiment(t *testing.T) {
	rows := measureClients(t, smallestClients)
	t.Logf("\n%s", table("by hand", "clients", rows))
	NewWithT(t).Expect(rows).NotTo(BeEmpty())
	for _, r := range rows {
		for _, value := range r.rollcall {
			NewWithT(t).Expect(value).To(BeNumerically(">=", 0), r.name)
		}
	}
}

// benchToken is valid in all clusters of measureClients.
const benchToken = "bench"

// measureClients runs the clients in a process of their own, as their memory is
// measured. The hub and the clusters are in this one.
func measureClients(tb testing.TB, s clientsSize) []row {
	tb.Helper()
	scheme := k8sruntime.NewScheme()
	check(tb, v1alpha1.AddToScheme(scheme))
	home := mctest.New(tb, mctest.Options{Scheme: scheme})
	fleet := newFleet(tb, s.warm+s.byHand)
	todo := Task{Role: "clients", Home: remoteOf(home)}
	for i, c := range fleet.Clusters() {
		c.AddToken(benchToken, "bench")
		if i < s.warm {
			createProfile(tb, home, c.Name(), c.Config().Host, c.Config().CAData)
		}
		todo.Members = append(todo.Members, remoteOf(c))
	}
	for i := range s.known - s.warm {
		createProfile(tb, home, fmt.Sprintf("unused-%d", i), "https://unused.example.com", fleet.Cluster(0).Config().CAData)
	}

	c, stop := startChild(tb, todo)
	defer stop()
	before := ask[Held](c, "Known", s.known)
	var firsts, byHand, warm, again []float64
	for i := range s.warm {
		firsts = append(firsts, ask[time.Duration](c, "Call", i).Seconds())
	}
	after := ask[Held](c, "Held", 0) // before clients are made by hand, which leave connections behind
	for i := range s.byHand {
		byHand = append(byHand, ask[time.Duration](c, "CallByHand", s.warm+i).Seconds())
	}
	for i := range s.byHand {
		for range s.calls { // alternately, since the load of the machine changes
			warm = append(warm, ask[time.Duration](c, "Call", i).Seconds())
			again = append(again, ask[time.Duration](c, "CallByHand", s.warm+i).Seconds())
		}
	}
	rows := []row{
		pair("first call, p50", milliseconds, quotient, nil, median(byHand), median(firsts)),
		pair("next call, p50", milliseconds, quotient, atMost(0.5), median(again), median(warm)),
		single("heap per profile known", kilobytes, nil, float64(before.Heap)/float64(s.known)),
		single("heap per cluster in use", kilobytes, nil, max(0, float64(after.Heap-before.Heap)/float64(s.warm))),
		single("goroutines per cluster in use", decimal, nil, max(0, float64(after.Goroutines-before.Goroutines)/float64(s.warm))),
	}
	if after.Memory > 0 {
		rows = append(rows,
			single("resident memory", megabytes, atMost(300e6), float64(after.Memory)),
			single("resident memory, peak", megabytes, atMost(300e6), float64(after.PeakMemory)))
	}
	return rows
}

// createProfile creates a profile in the hub, of about the size of real ones.
func createProfile(tb testing.TB, home *mctest.Cluster, name, server string, ca []byte) {
	tb.Helper()
	p := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{
		v1alpha1.LabelClusterManagerKey: "bench", "region": "region-1", "environment": "production",
	}}}
	p.Spec.DisplayName, p.Spec.ClusterManager.Name = name, "bench"
	check(tb, home.Create(p))
	p.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ClusterConditionControlPlaneHealthy, Status: metav1.ConditionTrue, Reason: "Healthy", LastTransitionTime: metav1.Now()},
		{Type: "Joined", Status: metav1.ConditionTrue, Reason: "Joined", LastTransitionTime: metav1.Now()},
	}
	p.Status.Version.Kubernetes = "v1.37.1"
	p.Status.Properties = []v1alpha1.Property{{Name: inventory.PropertyClusterID, Value: name, LastObservedTime: metav1.Now()}}
	p.Status.AccessProviders = []inventory.AccessProvider{{Name: "bench", Cluster: clientcmdv1.Cluster{
		Server: server, CertificateAuthorityData: ca,
	}}}
	check(tb, home.UpdateStatus(p))
}
