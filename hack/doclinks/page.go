// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// page has the relevant content of a Markdown file.
type page struct {
	links   []link
	anchors map[string]bool
	quotes  []quote
}

// link is a link in a Markdown file.
type link struct {
	line   int
	target string
}

// quote is a code block with the content of a file, or with a part of it.
type quote struct {
	line int
	file string
	text string
	part bool
}

var (
	inlineCode = regexp.MustCompile("`[^`]+`")
	// [text](target "title"), the reference definition [name]: target, HTML.
	linkForms = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|^\s{0,3}\[[^\]]+\]:\s+(\S+)|(?:href|src)="([^"]+)"`)
	quoteMark = regexp.MustCompile(`^<!-- (part )?from: (\S+) -->$`)
	heading   = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	linkText  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	anchorTag = regexp.MustCompile(`<a\s+(?:id|name)="([^"]+)"`)
)

// parse returns the quotes of files and, outside of fenced code blocks, the links
// and the anchors of headings that start with #.
func parse(text string) page {
	p := page{anchors: map[string]bool{}}
	fence := ""
	number := 0
	quoting := false
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if marker := fenceMarker(line); marker != "" && (fence == "" || fence == marker) {
			if fence == "" {
				fence = marker
			} else {
				fence, quoting = "", false
			}
			continue
		}
		if fence != "" {
			if quoting {
				p.quotes[len(p.quotes)-1].text += line + "\n"
			}
			continue
		}
		if match := quoteMark.FindStringSubmatch(line); match != nil {
			p.quotes = append(p.quotes, quote{line: number, file: match[2], part: match[1] != ""})
			quoting = true
		}
		if match := heading.FindStringSubmatch(line); match != nil {
			p.addHeading(match[1])
		}
		for _, match := range anchorTag.FindAllStringSubmatch(line, -1) {
			p.anchors[match[1]] = true
		}
		for _, match := range linkForms.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
			p.links = append(p.links, link{line: number, target: match[1] + match[2] + match[3]})
		}
	}
	return p
}

// fenceMarker returns the marker that opens or closes a code block on the line, or "".
func fenceMarker(line string) string {
	line = strings.TrimSpace(line)
	for _, marker := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, marker) {
			return marker
		}
	}
	return ""
}

// addHeading adds the anchor of a heading as common renderers do: its letters,
// digits, hyphens and underscores in lower case, hyphens for spaces, and a number
// if the same anchor exists.
func (p page) addHeading(text string) {
	slug := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		default:
			return -1
		}
	}, linkText.ReplaceAllString(text, "$1"))
	anchor := slug
	for n := 1; p.anchors[anchor]; n++ {
		anchor = fmt.Sprintf("%s-%d", slug, n)
	}
	p.anchors[anchor] = true
}
