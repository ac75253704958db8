// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// table returns the table of the profiles. The columns with a priority are for -o wide.
func (o *options) table(profiles ...*inventory.Profile) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name"}, {Name: "Set"}, {Name: "Member-ID"}, {Name: "Version"}, {Name: "Health"}, {Name: "Access"}, {Name: "Age"},
		{Name: "Manager", Priority: 1}, {Name: "Cluster-ID", Priority: 1}, {Name: "Server", Priority: 1},
	}}
	namespaced := o.sources.AllNamespaces
	if namespaced {
		table.ColumnDefinitions = append([]metav1.TableColumnDefinition{{Name: "Namespace"}}, table.ColumnDefinitions...)
	}
	for _, profile := range profiles {
		cells := []any{
			o.name(profile), cmp.Or(inventory.ClusterSet(profile), "-"), cmp.Or(inventory.MemberID(profile), "-"), version(profile),
			o.health(profile), access(profile), age(profile.CreationTimestamp),
			profile.Spec.ClusterManager.Name, cmp.Or(inventory.ClusterID(profile), "-"), server(profile),
		}
		if namespaced {
			cells = append([]any{profile.Namespace}, cells...)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	return table
}

// name returns the name by which users of the inventory know the profile.
func (o *options) name(profile *inventory.Profile) string {
	if o.sources.From == sources.Hub {
		return profile.Name
	}
	return inventory.ClusterName(profile)
}

func (o *options) health(profile *inventory.Profile) any {
	health := inventory.HealthOf(profile)
	switch health.Status {
	case inventory.Healthy:
		return o.env.Cell(command.Green, health.String())
	case inventory.Unhealthy:
		return o.env.Cell(command.Red, health.String())
	default:
		return o.env.Cell(command.Yellow, health.String())
	}
}

func version(profile *inventory.Profile) string {
	version, err := inventory.KubernetesVersion(profile)
	if err != nil {
		return "-"
	}
	return "v" + version.String()
}

func access(profile *inventory.Profile) string {
	var names []string
	for _, provider := range inventory.AccessProviders(profile) {
		names = append(names, provider.Name)
	}
	return cmp.Or(strings.Join(names, ","), "-")
}

func server(profile *inventory.Profile) string {
	for _, provider := range inventory.AccessProviders(profile) {
		if provider.Cluster.Server != "" {
			return provider.Cluster.Server
		}
	}
	return "-"
}

func age(created metav1.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(created.Time))
}
