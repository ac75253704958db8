// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package providerfile

import "slices"

// loosening has the fields of a provider that restrict less than before.
type loosening struct {
	provider string
	fields   []string
}

// loosened compares the providers that both versions have.
func loosened(before, after *File) []loosening {
	var all []loosening
	for i := range after.Providers {
		provider := &after.Providers[i]
		same := func(p Provider) bool { return p.Name == provider.Name }
		if old := slices.IndexFunc(before.Providers, same); old >= 0 {
			if fields := provider.loosenedSince(&before.Providers[old]); len(fields) > 0 {
				all = append(all, loosening{provider.Name, fields})
			}
		}
	}
	return all
}

// loosenedSince returns the fields that allow more than those of the provider did
// before.
func (p *Provider) loosenedSince(before *Provider) []string {
	var fields []string
	add := func(field string, looser bool) {
		if looser {
			fields = append(fields, field)
		}
	}
	ignoresArgs := func(p *Provider) bool { return p.ProfileSourcedCLIArgsPolicy != ProfileSourcedCLIArgsAppend }
	ignoresEnv := func(p *Provider) bool {
		return p.ProfileSourcedEnvVarsPolicy == "" || p.ProfileSourcedEnvVarsPolicy == ProfileSourcedEnvVarsIgnore
	}
	add("profileSourcedCLIArgsPolicy", ignoresArgs(before) && !ignoresArgs(p))
	add("profileSourcedEnvVarsPolicy", ignoresEnv(before) && !ignoresEnv(p) ||
		p.ProfileSourcedEnvVarsPolicy == ProfileSourcedEnvVarsReplace && before.ProfileSourcedEnvVarsPolicy != ProfileSourcedEnvVarsReplace)
	was := before.Rollcall.allowlists()
	for i, list := range p.Rollcall.allowlists() {
		switch then := was[i].entries; {
		case list.field == "allowedProxies" && len(then) == 0: // none if there are allowed servers
			add("rollcall."+list.field, len(before.Rollcall.AllowedServers) > 0 && len(list.entries) > 0)
		default:
			add("rollcall."+list.field, len(then) > 0 && (len(list.entries) == 0 || adds(list.entries, then)))
		}
	}
	now, then := p.Rollcall.InheritedEnvVars, before.Rollcall.InheritedEnvVars
	add("rollcall.inheritedEnvVars", then != nil && (now == nil || adds(now, then)))
	add("rollcall.allowInsecureSkipTLSVerify", p.Rollcall.AllowInsecureSkipTLSVerify && !before.Rollcall.AllowInsecureSkipTLSVerify)
	add("rollcall.allowPlainHTTP", p.Rollcall.AllowPlainHTTP && !before.Rollcall.AllowPlainHTTP)
	return fields
}

// adds reports whether the list has an entry that it did not have.
func adds(now, then []string) bool {
	return slices.ContainsFunc(now, func(entry string) bool { return !slices.Contains(then, entry) })
}
