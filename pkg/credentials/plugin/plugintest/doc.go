// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package plugintest puts an exec credential plugin, written in whatever
// language, through what Kubernetes clients expect of one and what whoever runs
// many of them wishes for:
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
// The command must be one that succeeds: it is given what it needs to obtain a
// credential. From there on the suite varies the request, the arguments and the
// surroundings. A plugin passes if it
//
//   - answers in v1 and in v1beta1, whichever was asked, with one ExecCredential
//     on standard output and nothing else, which is valid and not expired;
//   - takes requests of a hundred kilobytes and with fields of later versions,
//     and many runs at once;
//   - never waits for standard input and needs no terminal;
//   - fails, where it has to, with an exit code from 1 to 125, nothing on standard
//     output, and one line without a stack trace on standard error;
//   - never shows a secret there;
//   - prints a help for --help, and refuses flags that it does not know;
//   - ends soon after SIGTERM and SIGINT, and leaves no process and no file
//     behind.
//
// The plugin is run some thirty times, in an empty folder.
package plugintest
