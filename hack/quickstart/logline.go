// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// logLine is a line of the controller's log.
type logLine struct {
	message string
	cluster string
	level   string
	fields  map[string]any
}

// parseLogLine reads a line as zap writes it in JSON. Other lines, client-go's
// and those of a panic, are not ok.
func parseLogLine(line string) (l logLine, ok bool) {
	if json.Unmarshal([]byte(line), &l.fields) != nil {
		return logLine{}, false
	}
	l.message, _ = l.fields["msg"].(string)
	l.cluster, _ = l.fields["cluster"].(string)
	l.level, _ = l.fields["level"].(string)
	return l, l.message != ""
}

// logs matches the lines with that message about that cluster.
func logs(message, cluster string) func(line string) bool {
	return func(line string) bool {
		l, ok := parseLogLine(line)
		return ok && l.message == message && l.cluster == cluster
	}
}

// matters tells whether somebody who looks for a fault wants to see the line:
// all but what is logged at raised verbosity alone.
func matters(line string) bool {
	if l, ok := parseLogLine(line); ok {
		return l.level == "info" || l.level == "error"
	}
	return !isClientGoInfo(line)
}

// lastWords returns the last of the lines, or where there is a panic, the first
// from there.
func lastWords(lines []string) []string {
	const enough = 12
	panicked := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
	})
	if panicked >= 0 {
		return lines[panicked:min(len(lines), panicked+enough)]
	}
	return lines[max(0, len(lines)-enough):]
}

// isClientGoInfo tells whether the line begins as "I1120 16:12:18.000000" does.
func isClientGoInfo(line string) bool {
	return len(line) > 5 && line[0] == 'I' && strings.Trim(line[1:5], "0123456789") == "" && line[5] == ' '
}

// shorten makes a log line one for humans: the message and its fields, those
// named alone if any are.
func shorten(line string, names ...string) string {
	l, ok := parseLogLine(line)
	if !ok {
		return line
	}
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(l.fields))
		names = slices.DeleteFunc(names, func(name string) bool {
			return slices.Contains([]string{"ts", "level", "msg", "stacktrace"}, name)
		})
	}
	text := l.message
	for _, name := range names {
		if value, ok := l.fields[name]; ok {
			text += fmt.Sprintf(" %s=%v", name, value)
		}
	}
	return text
}
