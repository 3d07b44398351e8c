package testutil

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
	"corpus-git/internal/printable"
)

// Hostile is untrusted text that tries to show more, or something else, than it is: a separate line, a title for the terminal, an 8-bit
// control, a change of direction, an invisible character, a line separator, bytes that are not UTF-8.
const Hostile = "evil\nFORGED: all is well\r\x1b]0;title\x07\x1b[2K\x1b[8mhidden\u009b31m\u202eturned\u2066\u200b\u2028line\x00\xff"

// colours are the sequences that this program writes itself.
var colours = regexp.MustCompile("\x1b\\[(0|1|2|31|32|33)m")

// Seen fails the test if out, which a program printed, contains a character that is not shown as itself, or a line that begins like one of
// Hostile's. Line feeds and tabs are allowed.
func Seen(t testing.TB, where, out string) {
	t.Helper()
	seen(t, where, colours.ReplaceAllString(out, ""), func(r rune) bool { return printable.Hidden(r) && r != '\t' })
}

// SeenLog is Seen for output that contains lines of other programs: colours are allowed, and the joiners that scripts and emoji need.
func SeenLog(t testing.TB, where, out string) {
	t.Helper()
	seen(t, where, event.StripColour(out), func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' || printable.IsBidiControl(r) || r == 0x2028 || r == 0x2029
	})
	require.NotContains(t, out, "\x1b[8m", where)
}

func seen(t testing.TB, where, out string, hidden func(rune) bool) {
	t.Helper()
	for line := range strings.SplitSeq(out, "\n") {
		require.False(t, strings.HasPrefix(line, "FORGED"), "%s: %q", where, line)
		for _, r := range line {
			require.False(t, hidden(r), "%s: %q has %q", where, line, r)
		}
	}
}

// Fill puts text into every field, element and value of the type string that v, a pointer, leads to; strings of named types are unchanged,
// because their packages check them. It returns how many it set.
func Fill(v any, text string) int { return fill(reflect.ValueOf(v), text) }

func fill(v reflect.Value, text string) (n int) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n = fill(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				n += fill(v.Field(i), text)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			n += fill(v.Index(i), text)
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() && v.CanSet() {
			v.SetString(text)
			n = 1
		}
	}
	return n
}
