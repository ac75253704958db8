// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import "regexp"

// secretNameForm matches names that end like those of secrets.
var secretNameForm = regexp.MustCompile(`(?i)` + secretName + `s?["']?$`)

// Value returns the value of a field or a flag without secrets. If the name is a
// secret's, nothing of the value is returned, also if it is a word.
func Value(name, value string) string {
	if secretNameForm.MatchString(name) && value != "" {
		return Mark
	}
	return Text(value)
}

// flagForm matches a flag with its value.
var flagForm = regexp.MustCompile(`(?s)^(--?[^=\s]+=)(.*)$`)

// Args returns the arguments of a command without secrets, one for one.
func Args(args []string) []string {
	clean := make([]string, len(args))
	for i, arg := range args {
		before := ""
		if i > 0 && len(args[i-1]) > 1 && args[i-1][0] == '-' {
			before = args[i-1]
		}
		if groups := flagForm.FindStringSubmatch(arg); groups != nil {
			clean[i] = groups[1] + Value(groups[1][:len(groups[1])-1], groups[2])
		} else if arg != "" && arg[0] == '-' {
			clean[i] = Text(arg)
		} else {
			clean[i] = Value(before, arg)
		}
	}
	return clean
}
