// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package plugintest tests an exec credential plugin, written in any language,
// for what Kubernetes clients and operators of large fleets expect:
//
//	func TestConformance(t *testing.T) {
//		plugintest.Run(t, plugintest.Command{
//			Path: binary,
//			Args: []string{"--kubeconfig=" + hub},
//			Cluster: &plugin.Cluster{
//				Server: "https://c1.example.com:6443",
//				Config: json.RawMessage(`{"clusterName":"c1"}`),
//			},
//		})
//	}
//
// The command must be one that obtains a credential. The suite then varies the
// request, the arguments and the environment. A plugin passes if it
//
//   - prints one ExecCredential, in the version of the request (v1 or v1beta1)
//     and nothing else on standard output, which is valid and not expired;
//   - accepts requests of a hundred kilobytes, unknown fields in them, and many
//     concurrent runs;
//   - never waits for standard input and needs no terminal;
//   - fails, where it has to, with an exit code from 1 to 125, nothing on standard
//     output, and one line without a stack trace on standard error;
//   - never prints a secret on standard error;
//   - prints help for --help, and rejects unknown flags;
//   - stops soon after SIGTERM and SIGINT, and leaves no process and no file
//     behind.
//
// The plugin is run some thirty times, in an empty folder.
package plugintest
