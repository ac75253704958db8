// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"strings"
)

// pairs has, for each letter, how common each letter is after it in technical
// English: 5 is as common as in random letters, 6 twice as common, 4 half.
var pairs = [26]string{
	"16762461605868060878543252",
	"51226100520620520452500030",
	"70537227606631830547500040",
	"52248230711432520451521130",
	"74786663422768464997465730",
	"50006500700511600433500030",
	"50307144500435610642410011",
	"60107000600132610424300020",
	"65766662002769851577060405",
	"30004000000000300040301000",
	"30026120400313220051401020",
	"71358221802722740255530070",
	"74227020702341670042400020",
	"72777583624435631378452030",
	"55662451514679560866755230",
	"63427234602721760756511020",
	"00000000000100000000500000",
	"83559341805455740576553050",
	"50628326703443662268613050",
	"72539316900533740776503161",
	"55545350500657350667000202",
	"50007000600010400010200000",
	"50105014500204400430000000",
	"20314001400000050005000110",
	"21204020300234340142102012",
	"40005001300000200010000002",
}

// class says what a run of letters and digits may be part of.
type class int

const (
	word    class = iota // a word, or several in camel case
	mixed                // words with other characters, or short ones
	neutral              // too short to tell, or a number
	random               // of a secret
)

// pieceForm matches the words of a name in camel case, and its numbers.
var pieceForm = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+|[0-9]+`)

// classify judges a run of letters and digits.
func classify(run string) class {
	n := len(run)
	switch {
	case isNumber(run) || n <= 3:
		return neutral
	case n >= 8 && distinct(run) <= 4: // such as xxxxxxxx
		return word
	}
	pieces := pieceForm.FindAllString(run, -1)
	explained, digits := 0, false
	for _, piece := range pieces {
		switch {
		case isNumber(piece):
			digits = true
		case isWord(piece):
			explained += len(piece)
		}
	}
	switch {
	case digits && n >= 40:
		return random
	case explained == n:
		return word
	case 10*explained >= 6*n:
		return mixed
	// Random letters change their case more often than short words do.
	case !digits && 10*n >= 32*len(pieces) && 2*explained >= n:
		return mixed
	}
	return random
}

// isWord reports whether the letters are likely to be a word. The longer they
// are, the more regular a word is.
func isWord(letters string) bool {
	switch n := len(letters); {
	case n < 4:
		return false
	case n < 7:
		return isPronounceable(letters, 4.6)
	case n < 10:
		return isPronounceable(letters, 5.0)
	}
	return isPronounceable(letters, 5.3)
}

func isPronounceable(letters string, atLeast float64) bool {
	letters = strings.ToLower(letters)
	if !strings.ContainsAny(letters, "aeiouy") {
		return false
	}
	sum := 0
	for i := 1; i < len(letters); i++ {
		sum += int(pairs[letters[i-1]-'a'][letters[i]-'a'] - '0')
	}
	return float64(sum) >= atLeast*float64(len(letters)-1)
}

func isNumber(text string) bool { return strings.Trim(text, "0123456789") == "" }

func distinct(text string) int {
	seen := map[rune]bool{}
	for _, r := range strings.ToLower(text) {
		seen[r] = true
	}
	return len(seen)
}
