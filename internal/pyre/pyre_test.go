package pyre

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded is one case of testdata/expected.json: Python's result. generate.py describes how they are made.
type recorded struct {
	Expr   string    `json:"e"`
	Text   string    `json:"t"`
	Flags  string    `json:"f"`
	Repl   *string   `json:"r"`
	Bad    bool      `json:"bad"`
	Search []*string `json:"search"`
	Match  []*string `json:"match"`
	Sub    string    `json:"sub"`
}

func groups(r *Regexp, text string, m Match) []*string {
	if m == nil {
		return nil
	}
	var out []*string
	for n := range r.Groups() + 1 {
		s, ok := m.Group(text, n)
		out = append(out, nil)
		if ok {
			out[n] = &s
		}
	}
	return out
}

func TestSameAsPython(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "expected.json"))
	require.NoError(t, err)
	var cases []recorded
	require.NoError(t, json.Unmarshal(data, &cases))
	require.Greater(t, len(cases), 3000, "cases are missing")
	for _, c := range cases {
		var flags Flags
		switch c.Flags {
		case "i":
			flags = IgnoreCase
		case "m":
			flags = MultiLine
		}
		what := c.Expr + " on " + c.Text + " " + c.Flags
		r, err := Compile(c.Expr, flags)
		if c.Bad && c.Repl == nil {
			require.Error(t, err, what)
			continue
		}
		require.NoError(t, err, what)
		repl := `<\g<0>>`
		if c.Repl != nil {
			repl = *c.Repl
		} else {
			m, err := r.Find(c.Text, false)
			require.NoError(t, err, what)
			require.Equal(t, c.Search, groups(r, c.Text, m), "search %s", what)
			m, err = r.Find(c.Text, true)
			require.NoError(t, err, what)
			require.Equal(t, c.Match, groups(r, c.Text, m), "match %s", what)
		}
		tmpl, err := r.Template(repl)
		if c.Bad {
			require.Error(t, err, "%s for %s", repl, what)
			continue
		}
		require.NoError(t, err, "%s for %s", repl, what)
		all, err := r.FindAll(c.Text)
		require.NoError(t, err, what)
		require.Equal(t, c.Sub, tmpl.Replace(c.Text, all), "sub %s in %s", repl, what)
		require.Len(t, c.Sub, tmpl.Size(c.Text, all), "size of sub %s in %s", repl, what)
	}
}

// An expression that would take for ever ends, with an error.
func TestBacktrackingEnds(t *testing.T) {
	for _, e := range []string{`(?=a)(a+)+$`, `(a|a)*\Z(?!x)b`, `((a*)*)*\1b`} {
		r, err := Compile(e, 0)
		require.NoError(t, err)
		_, err = r.Find(strings.Repeat("a", 5000)+"b!", false)
		if err != nil {
			require.ErrorIs(t, err, ErrLimit)
		}
	}
	r, err := Compile(`(?=(a+)+$)`, 0)
	require.NoError(t, err)
	_, err = r.Find(strings.Repeat("a", 40)+"!", false)
	require.ErrorIs(t, err, ErrLimit)
	_, err = r.Find(strings.Repeat("b", Templates().Text+1), false)
	require.ErrorIs(t, err, ErrLimit)
	r, err = Compile(`(a+)+$`, 0)
	require.NoError(t, err)
	_, err = r.Find(strings.Repeat("a", 100_000)+"!", false)
	require.NoError(t, err, "an automaton decides it")
	var bad *SyntaxError
	_, err = Compile(strings.Repeat("(", 10_000), 0)
	require.True(t, errors.As(err, &bad))
}
