// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package redact removes secrets from what programs print.
//
//	redact.Text("cannot log in: token ghp_9fK2… is refused") // cannot log in: token ghp_[redacted] is refused
//
// It judges a value by its shape, and does not trust the word before it: in
// "token: NoCredentialProviders" there is no secret, and in "using X" there may
// be one. Redacted are
//
//   - what is as irregular as random characters: from 24 characters on for
//     hexadecimal digits, from 20 on for letters of one case with digits, and from
//     16 on for others. This includes base64, tokens and their known forms;
//   - private keys in PEM form, JSON web tokens and bootstrap tokens of kubeadm;
//   - passwords in URLs;
//   - shorter values that are assigned to a secret's name (password=x1y2, --token
//     x1y2, "token":"x1y2", Bearer x1y2), unless they consist of words;
//   - after a secret's name and a colon, what changes between letters and digits
//     three times.
//
// Readable stay words, also long ones in camel case, numbers, the names of hosts
// and files, ARNs and OCIDs, and UUIDs: those of tenants, subscriptions and
// requests are in most errors of clouds and open nothing. A UUID that is assigned
// to a secret's name is redacted. A password that is a word, as in
// "password=letmein", is not recognised. Digests of 24 digits or more are redacted
// unless they follow "sha256:" or are part of a file's path.
package redact
