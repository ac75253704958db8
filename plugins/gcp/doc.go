// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package gcp is a credential plugin that gives access tokens of Google Cloud,
// for GKE clusters and for those behind Connect Gateway.
//
// The tokens come from application default credentials: a file, or the metadata
// server of GCE, GKE and Cloud Run. From there on, a service account can be
// impersonated. Flags say which, and which ones a profile may choose:
//
//	{"impersonateServiceAccount": "viewer@p1.iam.gserviceaccount.com"}
//
// That is all that a profile can say; it can never name a file. A token is good
// for every cluster, and everything else, that its identity may use: the
// provider's allowedServers should say to whom tokens may be sent.
//
// Where application default credentials are is said by the environment of the
// process, also for a plugin that is linked in.
package gcp
