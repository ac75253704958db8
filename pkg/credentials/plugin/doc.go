// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package plugin is for writing exec credential plugins: small programs that
// print a credential for one cluster (KEP-5339).
//
// A plugin implements [Plugin], and its program calls [Main]:
//
//	type config struct {
//		Audience string `json:"audience"`
//	}
//
//	func (p *myPlugin) Credential(ctx context.Context, req plugin.Request) (*plugin.Credential, error) {
//		cfg, err := plugin.DecodeConfig[config](req)
//		if err != nil {
//			return nil, err
//		}
//		token, expiry, err := p.exchange(ctx, cfg.Audience)
//		return &plugin.Credential{Token: token, Expiry: expiry}, err
//	}
//
//	func main() { plugin.Main(&myPlugin{}) }
//
// Main implements the protocol client.authentication.k8s.io in its versions v1
// and v1beta1, handles --help, --version and --explain, sets a time limit, and
// reports every failure as one line on standard error and an exit code. A
// plugin never reads standard input. The subpackage plugintest tests a plugin,
// written in any language, for all of this.
//
// The config that a plugin receives comes from a ClusterProfile, whose author
// is not trusted. What a plugin may read or request is set by its flags.
//
// The only dependencies besides the standard library are sigs.k8s.io/json and,
// for the help, github.com/spf13/cobra, which keeps plugins small.
package plugin
