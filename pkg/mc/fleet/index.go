// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/fieldindex"
)

// IndexField adds the index to the caches of all clusters, those engaged now and
// those engaged later. It may be called at any time and sends no request: in each
// cluster the index is added by the first List that uses it, through the cluster's
// client or cache. That List starts the informer of the kind if there is none, and
// waits until it has synced, 10 s at most. Where the kind is missing or forbidden the
// List returns an error, and the next one tries again.
//
// To add an index again with the same function does nothing; another function for
// the field is an error. Functions that differ only in variables that they capture
// count as the same.
func (f *Fleet) IndexField(_ context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	return f.indexes.Add(fieldindex.Index{Object: obj, Field: field, Extract: extractValue})
}
