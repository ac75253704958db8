// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// told is a sink that writes down what it is told.
type told struct{ all []string }

func (t *told) Put(p *inventory.Profile) {
	t.all = append(t.all, "put "+p.Name+" "+inventory.ClusterSet(p))
}
func (t *told) Remove(key inventory.Key) { t.all = append(t.all, "remove "+key.Name) }
func (t *told) Synced()                  { t.all = append(t.all, "synced") }

func TestNothingIsToldBeforeNamespacesAreKnownOrTakeTooLong(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(0, 0)
	sink := &told{}
	v := newView(logr.Discard(), sink, nil)
	v.unreadProfiles["fleet"], v.unreadNamespaces["fleet"] = true, true

	v.putProfile(&inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a"}})
	_, waits := v.advance(now.Add(time.Hour))
	g.Expect(waits).To(BeFalse(), "a hub that is out is waited for without limit")

	v.profilesRead("fleet", now)
	next, waits := v.advance(now)
	g.Expect(waits).To(BeTrue())
	g.Expect(next).To(Equal(now.Add(namespaceLimit)))
	g.Expect(sink.all).To(BeEmpty())

	v.advance(next)
	g.Expect(sink.all).To(Equal([]string{"put a ", "synced"}))

	v.putNamespace("fleet", "late")
	v.putNamespace("fleet", "late")
	v.putNamespace("elsewhere", "set")
	v.advance(next)
	g.Expect(sink.all).To(Equal([]string{"put a ", "synced", "put a late"}))
}
