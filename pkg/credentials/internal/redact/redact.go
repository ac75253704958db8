// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"slices"
	"strings"
)

// Mark replaces secrets.
const Mark = "[redacted]"

// Text returns the text without secrets. A secret whose beginning is missing,
// since the text is the end of a longer one, is recognised by what is left.
func Text(text string) string {
	if strings.Contains(text, "PRIVATE KEY-----") {
		for _, form := range keyForms {
			text = form.ReplaceAllString(text, Mark)
		}
	}
	text = replace(bootstrapToken, text, func(groups []string) string {
		switch classify(groups[1]) {
		case random, mixed:
			return Mark
		}
		return groups[0]
	})
	text = redactUserInfo(text)
	text = redactAssigned(text)
	text = redactWords(text)
	for _, form := range tokenForms {
		text = form.ReplaceAllString(text, Mark)
	}
	return redactLines(text)
}

// keyForms match private keys.
var keyForms = []*regexp.Regexp{
	// A private key, with line breaks as they are or as "\n". One without an end
	// was cut off there.
	regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
	// The rest of one whose beginning was cut off.
	regexp.MustCompile(`(?m)(?:^[ \t]*[A-Za-z0-9+/=]+[ \t]*\n|[A-Za-z0-9+/=]+(?:\\+[nr])+)*[A-Za-z0-9+/=]*-----END [A-Z0-9 ]*PRIVATE KEY-----`),
}

// tokenForms match what has the form of a secret and is short.
var tokenForms = []*regexp.Regexp{
	// A JSON web token.
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)*`),
	// The beginning of a PEM block or of a YAML file in base64.
	regexp.MustCompile(`\b(LS0tLS1|YXBpVmVyc2lvb)[A-Za-z0-9+/=_-]*`),
	// The ID of an AWS access key.
	regexp.MustCompile(`\b(AKIA|ASIA)[A-Z2-7]{16}\b`),
	// What the metadata servers and libraries of Google return.
	regexp.MustCompile(`\bya29\.[A-Za-z0-9._-]+`),
}

// bootstrapToken matches a token of kubeadm.
var bootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.([a-z0-9]{16})\b`)

// userInfoForm matches the user information of a URL.
var userInfoForm = regexp.MustCompile(`://([^\s/:@"']*)(:[^\s/@"']*(?:@[^\s/@"']+)*|)@`)

func redactUserInfo(text string) string {
	return replace(userInfoForm, text, func(groups []string) string {
		user, password := groups[1], groups[2]
		if !isPlain(user) {
			user = Mark
		}
		if len(password) > 1 {
			password = ":" + Mark
		}
		return "://" + user + password + "@"
	})
}

// secretName is the end of the names of secrets.
const secretName = `(?:token|secret|passw(?:or)?d|passphrase|pwd|(?:api|access|account|private|shared)[_-]?key|secret[_-]?id|` +
	`client-?key-?data|credentials?|signature|sig|assertion|cookie)`

// assignedForms match a name, what is between it and the value, and the value.
var assignedForms = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(` + secretName + `"\s*:\s*)(")((?:[^"\\]|\\.)*)`),
	regexp.MustCompile(`(?i)(` + secretName + `'\s*:\s*)(')([^']*)`),
	regexp.MustCompile(`(?i)(` + secretName + `\\+"\s*:\s*)(\\+")([^"\\]*)`),
	regexp.MustCompile(`(?i)(` + secretName + `["']?\s*)(=\s*["']?)([^\s"',;&=][^\s"',;&]*)`),
	regexp.MustCompile(`(?i)(--?[a-z0-9_-]*` + secretName + `)(\s+["']?)([^\s"',;]+)`),
	regexp.MustCompile(`(?i)(\b(?:bearer|basic))(\s+["']?)([^\s"',;]+)`),
}

// redactAssigned removes shorter values than redactWords does.
func redactAssigned(text string) string {
	for _, form := range assignedForms {
		text = replace(form, text, func(groups []string) string {
			if isPlain(groups[3]) {
				return groups[0]
			}
			return groups[1] + groups[2] + Mark
		})
	}
	return replace(namedForm, text, func(groups []string) string {
		if uuidForm.MatchString(groups[3]) || changes(groups[3]) < 3 {
			return groups[0]
		}
		return groups[1] + groups[2] + Mark
	})
}

// namedForm matches what follows a secret's name and a colon: more often than a
// secret, this is what is wrong with it.
var namedForm = regexp.MustCompile(`(?i)(` + secretName + `)(:\s+["']?)([^\s"',;]+)`)

// changes counts where a letter follows a digit or a digit a letter: two in x509a.
func changes(text string) int {
	n := 0
	for _, run := range runForm.FindAllString(text, -1) {
		for i := 1; i < len(run); i++ {
			if isNumber(run[i-1:i]) != isNumber(run[i:i+1]) {
				n++
			}
		}
	}
	return n
}

var runForm = regexp.MustCompile(`[A-Za-z0-9]+`)

// isPlain reports whether the text consists of words, short numbers and their
// separators.
func isPlain(text string) bool {
	text = strings.ReplaceAll(text, Mark, "")
	words, short := 0, 0
	for _, run := range runForm.FindAllString(text, -1) {
		switch {
		case len(run) <= 3:
			short += len(run)
		case classify(run) != random && !strings.ContainsAny(run, "0123456789"):
			words++
		default:
			return false
		}
	}
	return (words > 0 || short < 6) && !strings.ContainsAny(text, "+=%~^!")
}

// redactLines removes the last line of what is several lines of base64.
func redactLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := 1; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if strings.TrimSpace(lines[i-1]) == Mark && wordForm.FindString(line) == line && line != "" && !isPlain(line) {
			lines[i] = Mark
		}
	}
	return strings.Join(lines, "\n")
}

// replace calls the function for the groups of each match.
func replace(form *regexp.Regexp, text string, by func(groups []string) string) string {
	var out strings.Builder
	end := 0
	for _, at := range form.FindAllStringSubmatchIndex(text, -1) {
		groups := make([]string, len(at)/2)
		for i := range groups {
			if at[2*i] >= 0 {
				groups[i] = text[at[2*i]:at[2*i+1]]
			}
		}
		out.WriteString(text[end:at[0]])
		out.WriteString(by(groups))
		end = at[1]
	}
	return out.String() + text[end:]
}

// wordForm matches the characters of tokens, paths and hosts.
var wordForm = regexp.MustCompile(`[A-Za-z0-9+/=_.~%-]+`)

// uuidForm matches UUIDs.
var uuidForm = regexp.MustCompile(`(?:^|[^A-Za-z0-9])([0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})(?:[^A-Za-z0-9]|$)`)

// readableForms match what looks random but is no secret. Their first group
// stays.
var readableForms = []*regexp.Regexp{
	uuidForm,
	// Hosts, of which the first label may be an identifier.
	regexp.MustCompile(`(?:^|[/=])((?:[a-z0-9-]{1,63}|[A-Z0-9-]{1,63})(?:\.[a-z0-9-]{1,63})+\.[a-z]{2,24})\.?(?:/|$)`),
	// Files that are named after a digest.
	regexp.MustCompile(`(?:^|/)([0-9a-f]{16,64}\.[a-z]{2,5})$`),
	// Resources of Oracle's cloud.
	regexp.MustCompile(`(ocid1\.[a-z]+\.[a-z0-9]+\.[a-z0-9-]*\.[a-z0-9]+)`),
}

var (
	localPath    = regexp.MustCompile(`^(?:~|\.{0,2})/[^/].*`)
	hexComponent = regexp.MustCompile(`/([0-9a-f]{16,64})(?:/|$)`)
	digestForm   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// redactWords removes what is as irregular as random characters.
func redactWords(text string) string {
	var out strings.Builder
	end := 0
	for _, at := range wordForm.FindAllStringIndex(text, -1) {
		out.WriteString(text[end:at[0]])
		end = at[1]
		w := text[at[0]:at[1]]
		if digestForm.MatchString(w) && strings.HasSuffix(text[:at[0]], "sha256:") {
			out.WriteString(w)
			continue
		}
		from := 0
		for _, readable := range readableParts(w) {
			if readable[0] >= from {
				out.WriteString(redactWord(w[from:readable[0]]))
				out.WriteString(w[readable[0]:readable[1]])
				from = readable[1]
			}
		}
		out.WriteString(redactWord(w[from:]))
	}
	return out.String() + text[end:]
}

// readableParts returns the parts of the word that are no secrets, in order.
func readableParts(w string) [][2]int {
	var parts [][2]int
	forms := readableForms
	if localPath.MatchString(w) {
		forms = append(slices.Clip(forms), hexComponent)
	}
	for _, form := range forms {
		for from := 0; from < len(w); {
			at := form.FindStringSubmatchIndex(w[from:])
			if at == nil {
				break
			}
			parts = append(parts, [2]int{from + at[2], from + at[3]})
			from += at[3]
		}
	}
	slices.SortFunc(parts, func(a, b [2]int) int { return a[0] - b[0] })
	return parts
}

// run is a run of letters and digits in a word.
type run struct {
	start, end int
	class      class
}

func redactWord(w string) string {
	var runs []run
	for _, at := range runForm.FindAllStringIndex(w, -1) {
		runs = append(runs, run{at[0], at[1], classify(w[at[0]:at[1]])})
	}
	var out strings.Builder
	end := 0
	for i := 0; i < len(runs); i++ {
		if runs[i].class != random {
			continue
		}
		first, last := i, i
		for first > 0 && runs[first-1].start >= end && belongs(w, runs, first, -1) {
			first--
		}
		for belongs(w, runs, last, 1) {
			last++
		}
		if isSecret(w, runs[first:last+1]) {
			out.WriteString(w[end:runs[first].start])
			out.WriteString(Mark)
			end = runs[last].end
			if padding := len(w[end:]) - len(strings.TrimLeft(w[end:], "=")); padding > 0 {
				end += padding
			}
		}
		i = last
	}
	return out.String() + w[end:]
}

// belongs reports whether the run beside run i, in the direction, may be part of
// the same secret: it is irregular, or short with more of the secret behind it.
func belongs(w string, runs []run, i, direction int) bool {
	const atMost = 6
	for next := i + direction; next >= 0 && next < len(runs); next += direction {
		left, right := runs[min(next, next-direction)], runs[max(next, next-direction)]
		switch {
		case strings.Contains(w[left.end:right.start], "="):
			return false // a name or padding
		case runs[next].class == random || runs[next].class == mixed:
			return true
		case runs[next].end-runs[next].start > atMost:
			return false
		}
	}
	return false
}

// isSecret reports whether the runs, which follow each other in the word, are
// long and irregular enough.
func isSecret(w string, runs []run) bool {
	var irregular strings.Builder
	sum := 0
	for _, r := range runs {
		if r.class == random || r.class == mixed {
			irregular.WriteString(w[r.start:r.end])
		}
		if r.class == random {
			sum += r.end - r.start
		}
	}
	const atLeast = 8
	text, length := irregular.String(), runs[len(runs)-1].end-runs[0].start
	switch {
	case sum < atLeast:
		return false
	case strings.Trim(text, "0123456789abcdef") == "" || strings.Trim(text, "0123456789ABCDEF") == "":
		return len(text) >= 24 // AWS names resources with 17 such digits
	case text == strings.ToLower(text) || text == strings.ToUpper(text):
		// Names of pods end with up to 16 such characters.
		return length >= 20
	}
	return length >= 16
}
