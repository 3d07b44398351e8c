package render_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
	"corpus-git/sls/modules"
	"corpus-git/sls/render"
)

// recorded is testdata/expected.json: what Salt made of templates. generate.py says how it is made.
type recorded struct {
	Filters []string `json:"filters"`
	Tests   []string `json:"tests"`
	Globals []string `json:"globals"`
	Cases   []struct {
		In    string  `json:"in"`
		Out   *string `json:"out"`
		Error string  `json:"error"`
	} `json:"cases"`
}

func readRecorded(t *testing.T) recorded {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "expected.json"))
	require.NoError(t, err)
	var out recorded
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

// newRenderer makes a Renderer without pillar or files.
func newRenderer() *render.Renderer {
	return render.New(&modules.Env{Grains: py.NewDict("id", "m"), Pillar: py.NewDict(), Opts: py.NewDict()})
}

// differs are the templates whose result differs from Salt's on purpose.
var differs = regexp.MustCompile(strings.Join([]string{
	// An undefined argument, or one of a wrong type, is refused even where Salt happens not to look at it.
	`\|(json|yaml|mysql_to_dict|tojson)\(typo\)`, `\|tojson\([[{]`, `divisibleby\(typo\)`,
	// Tuples and lists that Salt takes for addresses and texts by accident.
	`^{{ \(1, 2\)\|is_ip`, `^{{ \['a', 'b'\]\|to_snake_case`,
}, "|"))

// pointer is an address in what Python prints of an object.
var pointer = regexp.MustCompile(`0x[0-9a-f]+>`)

// unordered puts the members of a set in order: that of strings differs from run to run in Salt.
func unordered(s string) string {
	if strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") && !strings.Contains(s, ":") {
		parts := strings.Split(s[1:len(s)-1], ", ")
		slices.Sort(parts)
		return strings.Join(parts, ", ")
	}
	return s
}

// TestSameAsSalt holds the filters, tests and globals to what Salt makes of them, with undefined values too.
func TestSameAsSalt(t *testing.T) {
	old := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = old })
	vars, err := os.ReadFile(filepath.Join("testdata", "vars.json"))
	require.NoError(t, err)
	rec := readRecorded(t)
	require.Greater(t, len(rec.Cases), 4000, "cases are missing")
	r := newRenderer()
	bad := 0
	for _, c := range rec.Cases {
		if c.Out != nil && pointer.MatchString(*c.Out) {
			continue
		}
		v, err := py.FromJSON(string(vars))
		require.NoError(t, err)
		got, err := r.Text(t.Context(), "x", c.In, v.(*py.Dict))
		var lack *jinja.LackError
		if errors.As(err, &lack) {
			continue // Salt runs it
		}
		same := c.Out == nil && err != nil || c.Out != nil && err == nil && unordered(*c.Out) == unordered(got)
		if !same && differs.MatchString(c.In) {
			continue
		}
		if !same {
			bad++
			if bad <= 100 {
				want := c.Error
				if c.Out != nil {
					want = *c.Out
				}
				t.Errorf("%s\ngot  %s %v\nwant %s", c.In, got, err, want)
			}
		}
	}
	require.Zero(t, bad, "templates differ")
}

// TestNames holds the names to Salt's: what it has is here, or known to be lacking; and nothing else is here.
func TestNames(t *testing.T) {
	rec := readRecorded(t)
	n := newRenderer().Names()
	require.ElementsMatch(t, rec.Filters, slices.Concat(n.Filters, render.Lacking()))
	require.ElementsMatch(t, rec.Tests, n.Tests)
	require.Subset(t, n.Globals, rec.Globals)
}
