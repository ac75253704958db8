// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package plugin is for writing credential plugins (KEP-5339): the programs that
// give a credential for one cluster.
package plugin
