// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

// logLine is a line of the controller's log.
type logLine struct {
	message string
	cluster string
	level   string
	fields  map[string]any
}

// parseLogLine parses a JSON line of zap. Other lines, such as those of client-go
// and of a panic, are not ok.
func parseLogLine(line string) (l logLine, ok bool) {
	if json.Unmarshal([]byte(line), &l.fields) != nil {
		return logLine{}, false
	}
	l.message, _ = l.fields["msg"].(string)
	l.cluster, _ = l.fields["cluster"].(string)
	l.level, _ = l.fields["level"].(string)
	return l, l.message != ""
}

// logs matches the lines with the message about the cluster.
func logs(message, cluster string) func(line string) bool {
	return func(line string) bool {
		l, ok := parseLogLine(line)
		return ok && l.message == message && l.cluster == cluster
	}
}

// listsConfigMaps matches client-go's lines about requests for all ConfigMaps, at the
// addresses of the members. A limit of 1 only asks for the resource version.
func listsConfigMaps(members ...*realfleet.Member) func(line string) bool {
	return func(line string) bool {
		u, err := url.Parse(requestURL.FindString(line))
		if err != nil || u.Path != "/api/v1/configmaps" ||
			!slices.ContainsFunc(members, func(m *realfleet.Member) bool { return m.Network.Addr() == u.Host }) {
			return false
		}
		query := u.Query()
		return query.Get("sendInitialEvents") == "true" || query.Get("watch") == "" && query.Get("limit") != "1"
	}
}

// requestURL matches the URL of a request in a log line.
var requestURL = regexp.MustCompile(`https://[^"'\\ ]+`)

// isRelevant reports whether the line, of zap or client-go, is logged also at the
// default verbosity.
func isRelevant(line string) bool {
	if l, ok := parseLogLine(line); ok {
		return l.level == "info" || l.level == "error"
	}
	return !clientGoInfo.MatchString(line)
}

// clientGoInfo matches a line like "I1120 16:12:18.000000 …", and further lines of
// the same value.
var clientGoInfo = regexp.MustCompile(`^(I\d{4} |\s|$)`)

// lastLines returns the last relevant lines of a log, or the beginning of a panic.
func lastLines(lines []string) []string {
	const limit = 12
	panicked := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
	})
	if panicked >= 0 {
		return lines[panicked:min(len(lines), panicked+limit)]
	}
	var relevant []string
	for _, line := range lines {
		if isRelevant(line) {
			relevant = append(relevant, line)
		}
	}
	return relevant[max(0, len(relevant)-limit):]
}

// shorten returns the message of a log line and its fields, or only the named
// fields if there are names. Empty ones are left out.
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
		if value, ok := l.fields[name]; ok && value != "" {
			fmt.Fprintf(&text, " %s=%v", name, value)
		}
	}
	return text.String()
}
