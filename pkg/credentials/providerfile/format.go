// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package providerfile

import (
	"fmt"
	"io"
)

// String returns the name and the plugin, and not the plugin's arguments and
// variables, which may contain secrets.
func (p Provider) String() string {
	text := fmt.Sprintf("provider %q", p.Name)
	switch {
	case p.Rollcall.InProcess != "":
		text += fmt.Sprintf(" with plugin %s in this process", p.Rollcall.InProcess)
	case p.ExecConfig != nil:
		text += fmt.Sprintf(" with command %s", p.ExecConfig.Command)
	}
	return text
}

// Format implements fmt.Formatter: every verb prints what String returns.
func (p Provider) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, p.String()) }
