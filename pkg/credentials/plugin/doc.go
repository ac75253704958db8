// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package plugin is for writing exec credential plugins: small programs that
// print a credential for one cluster (KEP-5339).
//
// A plugin implements [Plugin], and its program hands it to [Main]:
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
// Main speaks the protocol of client.authentication.k8s.io in its versions v1
// and v1beta1, answers --help, --version and --explain, sets a time limit, and
// turns every failure into one line on standard error and an exit code. A plugin
// never reads standard input. The subpackage plugintest puts a plugin, in
// whatever language, through all that.
//
// What a profile says is input from somebody who may be hostile: what may be
// read or asked for is set by the plugin's flags, which the profile does not
// get to choose.
//
// The package depends on the standard library alone, which keeps plugins small.
package plugin
