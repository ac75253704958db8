// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

// Metrics are those of the package.
var Metrics = metrics
