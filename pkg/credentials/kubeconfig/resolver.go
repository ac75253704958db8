// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Resolver turns contexts into Accesses. It is safe for concurrent use.
type Resolver struct {
	options Options
	exec    *credentials.Resolver
}

// ReadFile returns the content of a file. The path is one of Context.Files.
type ReadFile func(path string) ([]byte, error)

// New returns a Resolver.
func New(options Options) (*Resolver, error) {
	exec := &options.Exec
	if exec.ProviderFile != "" || len(exec.Providers) > 0 || len(exec.Plugins) > 0 {
		return nil, errors.New("kubeconfig: Exec.ProviderFile, Exec.Providers and Exec.Plugins must not be set")
	}
	if options.Trusted {
		exec.PluginDirs = slices.Clone(exec.PluginDirs)
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if filepath.IsAbs(dir) {
				exec.PluginDirs = append(exec.PluginDirs, dir)
			}
		}
	}
	resolver, err := credentials.New(*exec)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: Exec: %w", err)
	}
	return &Resolver{options: options, exec: resolver}, nil
}

// Close stops running commands and closes the connections of users with exec. It may be
// called more than once.
func (r *Resolver) Close() { r.exec.Close() }

// Access returns an Access for the context. The caller releases it. The profile is that
// of the cluster, for errors of commands. Files are read by the function, or from the
// disk if it is nil. The Access does not notice that a file changes.
func (r *Resolver) Access(profile inventory.Key, c *Context, read ReadFile) (*credentials.Access, error) {
	config, err := r.config(c, read)
	if err != nil {
		return nil, err
	}
	access, err := r.exec.FromRESTConfig(profile, config)
	if err != nil {
		return nil, c.userError("exec", execError(err))
	}
	return access, nil
}

// Cluster returns how to reach the cluster of the context, for an access provider in a
// profile. It contains no credential, and neither paths nor extensions. The errors are
// those of Access, except those of exec.
func (r *Resolver) Cluster(c *Context, read ReadFile) (clientcmdv1.Cluster, error) {
	config, err := r.config(c, read)
	if err != nil {
		return clientcmdv1.Cluster{}, err
	}
	server, proxy, err := c.urls()
	if err != nil {
		return clientcmdv1.Cluster{}, err
	}
	cluster := clientcmdv1.Cluster{
		Server:                   server.String(),
		CertificateAuthorityData: config.CAData,
		TLSServerName:            config.ServerName,
		InsecureSkipTLSVerify:    config.Insecure,
		DisableCompression:       config.DisableCompression,
	}
	if proxy != nil {
		proxy.User = nil
		cluster.ProxyURL = proxy.String()
	}
	return cluster, nil
}

// config returns the configuration of the context, without paths.
func (r *Resolver) config(c *Context, read ReadFile) (*rest.Config, error) {
	if err := r.check(c); err != nil {
		return nil, err
	}
	if read == nil {
		read = readFile
	}
	return c.config(read)
}

// execError returns the error of the command without the profile, which the author of the
// kubeconfig has not chosen.
func execError(err error) error {
	if errors.Is(err, credentials.ErrClosed) {
		return err
	}
	if e, ok := errors.AsType[*credentials.Error](err); ok {
		err = e.Err
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	if errors.Is(err, credentials.ErrDenied) {
		// Not an ErrDenied, for which a fleet ends the connection in use.
		return notAllowed(text)
	}
	return invalid(text)
}

// maxFile is how large a file may be that a kubeconfig names.
const maxFile = 1 << 20

// readFile reads a regular file. Others, such as pipes, could block.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}
