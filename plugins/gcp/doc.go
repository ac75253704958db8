// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package gcp is a credential plugin that prints access tokens of Google Cloud,
// for GKE clusters and for clusters behind Connect Gateway.
//
// The tokens come from application default credentials: a file, or the metadata
// server of GCE, GKE and Cloud Run. These can impersonate a service account.
// Flags set the default account, and the accounts that a profile may choose:
//
//	{"impersonateServiceAccount": "viewer@p1.iam.gserviceaccount.com"}
//
// A profile can set nothing else, and can never name a file. A token is valid for
// every cluster, and every other service, that its identity may use: set the
// provider's allowedServers to limit the servers that receive tokens.
//
// The environment of the process selects the application default credentials,
// also for a plugin that is linked in.
package gcp
