// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// Context is one context of a kubeconfig, with its cluster and its user. It does not
// change. Printing one shows no secret.
type Context struct {
	origin, dir, name     string
	clusterName, userName string
	cluster               clientcmdv1.Cluster
	user                  clientcmdv1.AuthInfo
}

// Context returns the context of that name or, for "", the current context. A context
// without a user is anonymous.
func (k *Kubeconfig) Context(name string) (*Context, error) {
	if name == "" {
		name = k.current
	}
	fault := &Error{Origin: k.origin, Context: name}
	fail := func(text string) (*Context, error) {
		fault.Err = invalid(text)
		return nil, fault
	}
	if name == "" {
		fault.Field = "current-context"
		return fail("must be set")
	}
	context := k.contexts[name]
	switch {
	case context == nil:
		return fail("is not defined")
	case context.err != nil:
		fault.Field, fault.Err = context.field, context.err
		return nil, fault
	}
	c := &Context{origin: k.origin, dir: k.dir, name: name, clusterName: context.value.Cluster, userName: context.value.AuthInfo}
	if c.clusterName == "" {
		fault.Field = "cluster"
		return fail("must be set")
	}
	fault.Cluster = c.clusterName
	cluster := k.clusters[c.clusterName]
	switch {
	case cluster == nil:
		return fail("is not defined")
	case cluster.err != nil:
		fault.Field, fault.Err = cluster.field, cluster.err
		return nil, fault
	}
	c.cluster = cluster.value
	if c.userName == "" {
		return c, nil
	}
	fault.Cluster, fault.User = "", c.userName
	user := k.users[c.userName]
	switch {
	case user == nil:
		return fail("is not defined")
	case user.err != nil:
		fault.Field, fault.Err = user.field, user.err
		return nil, fault
	}
	c.user = user.value
	return c, nil
}

// Name returns the name of the context.
func (c *Context) Name() string { return c.name }

// Files returns the paths of the files that the context names, sorted. They are
// absolute if the folder given to Parse is.
func (c *Context) Files() []string {
	var paths []string
	for _, f := range c.files() {
		if f.path != "" && len(f.data) == 0 {
			paths = append(paths, c.resolve(f.path))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// file is a field with a path, and the content that has precedence over it.
type file struct {
	field string
	path  string
	data  []byte
	user  bool // the field is one of the user, not of the cluster
}

func (c *Context) files() []file {
	return []file{
		{"certificate-authority", c.cluster.CertificateAuthority, c.cluster.CertificateAuthorityData, false},
		{"client-certificate", c.user.ClientCertificate, c.user.ClientCertificateData, true},
		{"client-key", c.user.ClientKey, c.user.ClientKeyData, true},
		{"tokenFile", c.user.TokenFile, nil, true},
	}
}

func (c *Context) resolve(path string) string {
	if filepath.IsAbs(path) || c.dir == "" {
		return path
	}
	return filepath.Join(c.dir, path)
}

// clusterError and userError return an error in a field of the cluster or the user.
func (c *Context) clusterError(field string, err error) error {
	return &Error{Origin: c.origin, Context: c.name, Cluster: c.clusterName, Field: field, Err: err}
}

func (c *Context) userError(field string, err error) error {
	return &Error{Origin: c.origin, Context: c.name, User: c.userName, Field: field, Err: err}
}

// String returns the context's name and where the kubeconfig is from.
func (c *Context) String() string { return fmt.Sprintf("context %q of %s", c.name, c.origin) }

// Format implements fmt.Formatter: every verb prints what String returns.
func (c *Context) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, c.String()) }
