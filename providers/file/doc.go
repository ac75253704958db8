// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package file provides the clusters of kubeconfig files. Each context is a cluster, whose
// name is the path of the file, "+" and the name of the context.
//
//	provider, err := file.New(file.Options{KubeconfigDirs: []string{"/etc/clusters"}})
//	…
//	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), provider, mcmanager.Options{})
//
// Without files and folders in the options, the files of the variable KUBECONFIG are
// read, ~/.kube/config, and those of the working directory that match
// DefaultKubeconfigGlobs.
//
// Files may appear, change and disappear at any time, as may those that they name, such as
// tokens and certificates. A new content is used when it has stayed the same for 0.3 s. It
// is tried beside the connection in use, which stays if the new one cannot be used. A file
// or folder that cannot be read leaves its clusters as they are.
//
// Files may do what they may do with kubectl. Options.Exec restricts the commands.
package file
