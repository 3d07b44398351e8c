package printable

import (
	"encoding/json"
	"os/exec"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"refs/heads/master":     "refs/heads/master",
		`C:\dir`:                `C:\dir`,
		"é日本🙂":                  "é日本🙂",
		"a\nerror: b":           `a\nerror: b`,
		"a\r\x1b[2Kb\tc":        `a\r\x1b[2Kb\tc`,
		"\x7f\u009b":            `\x7f\u009b`,
		"v1\u202egnp.exe":       `v1\u202egnp.exe`,
		"a\u200bb\ufeff\u2066c": `a\u200bb\ufeff\u2066c`,
		"a\u2028b\u2029c":       `a\u2028b\u2029c`,
		"caf\xe9 \xff":          `caf\xe9 \xff`,
		"\ufffd is a character": "\ufffd is a character",
		"tag \U000e0041":        `tag \U000e0041`,
	} {
		require.Equal(t, want, Line(in))
	}
	require.Equal(t, `ab\n…`, Clip("ab\ncd", 3))
	require.Equal(t, `ab\ncd`, Clip("ab\ncd", 5))
	require.Equal(t, "日本…", Clip("日本語", 2))
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{"a\n\tb\n": "a\n\tb\n", "a\x1b[m\n\u202eb\t\xff": "a\\x1b[m\n\\u202eb\t\\xff"} {
		require.Equal(t, want, Text(in))
	}
}

// The document has the same content, in visible characters.
func TestJSON(t *testing.T) {
	in := "a\u202eb\u200b\x7f\U000e0041é\\\"\n"
	doc, err := json.Marshal(in)
	require.NoError(t, err)
	out := JSON(doc)
	for _, r := range string(out) {
		require.False(t, Hidden(r), "%q", out)
	}
	require.Contains(t, string(out), "é")
	var got string
	require.NoError(t, json.Unmarshal(out, &got))
	require.Equal(t, in, got)
}

func TestWord(t *testing.T) {
	for in, want := range map[string]string{
		"master":          "master",
		"":                "''",
		"a b":             "'a b'",
		"x;rm -rf ~":      "'x;rm -rf ~'",
		"it's":            `'it'\''s'`,
		"$(id)":           "'$(id)'",
		"é/日本":            "é/日本",
		"a\u202eb":        `$'a\u202eb'`,
		"it's\\n\n":       `$'it\'s\\n\n'`,
		"refs/heads/a&&b": "'refs/heads/a&&b'",
	} {
		require.Equal(t, want, Word(in))
		out, err := exec.Command("bash", "-c", "printf %s "+Word(in)).Output()
		require.NoError(t, err)
		require.Equal(t, in, string(out))
	}
}

// For any input, the result is one line of visible characters.
func FuzzLine(f *testing.F) {
	for _, s := range []string{"a\nb", "\u202e", "\xff\xfe", "\x1b]0;x\x07"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, out := range []string{Line(s), Clip(s, 5)} {
			require.True(t, utf8.ValidString(out))
			for _, r := range out {
				require.False(t, Hidden(r) || IsBidiControl(r) || r != ' ' && unicode.IsControl(r), "%q", out)
			}
			require.Equal(t, out, Line(out))
		}
	})
}
