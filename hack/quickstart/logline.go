// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
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
// all but what is logged at raised verbosity alone, by zap or by client-go.
func matters(line string) bool {
	if l, ok := parseLogLine(line); ok {
		return l.level == "info" || l.level == "error"
	}
	return !clientGoInfo.MatchString(line)
}

// clientGoInfo matches a line like "I1120 16:12:18.000000 …", and those that
// follow it where a value takes more than one.
var clientGoInfo = regexp.MustCompile(`^(I\d{4} |\s|$)`)

// lastWords returns what a program logged last, or where it panicked, how that
// begins.
func lastWords(lines []string) []string {
	const enough = 12
	panicked := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
	})
	if panicked >= 0 {
		return lines[panicked:min(len(lines), panicked+enough)]
	}
	var words []string
	for _, line := range lines {
		if matters(line) {
			words = append(words, line)
		}
	}
	return words[max(0, len(words)-enough):]
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
	var text strings.Builder
	text.WriteString(l.message)
	for _, name := range names {
		if value, ok := l.fields[name]; ok {
			fmt.Fprintf(&text, " %s=%v", name, value)
		}
	}
	return text.String()
}
