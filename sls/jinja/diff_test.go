package jinja

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
)

// diffCase is one case of testdata/expected: what Jinja2 itself made of it. generate.py says how they are made.
type diffCase struct {
	Name     string            `json:"name"`
	Options  []string          `json:"options"`
	Files    map[string]string `json:"files"`
	Vars     json.RawMessage   `json:"vars"`
	Output   *string           `json:"output"`
	Error    string            `json:"error"`
	Template string            `json:"template"`
	Line     int               `json:"line"`
	Message  string            `json:"message"`
}

func (c diffCase) environment() *Environment {
	o := Options{
		Loader:              MapLoader(c.Files),
		StrictUndefined:     slices.Contains(c.Options, "strict"),
		TrimBlocks:          slices.Contains(c.Options, "trim"),
		LstripBlocks:        slices.Contains(c.Options, "lstrip"),
		KeepTrailingNewline: slices.Contains(c.Options, "keep"),
		ContextIsGlobal:     slices.Contains(c.Options, "global"),
	}
	if slices.Contains(c.Options, "data") {
		o.DataLoaders = map[string]DataLoader{
			"json": func(_ *Context, s string) (any, error) { return py.FromJSON(s) },
			"text": func(_ *Context, s string) (any, error) { return s, nil },
		}
	}
	return New(o)
}

func (c diffCase) run() (string, error) {
	vars, err := py.FromJSON(string(c.Vars))
	if err != nil {
		return "", err
	}
	t, err := c.environment().Get(context.Background(), "main")
	if err != nil {
		return "", err
	}
	return t.Render(context.Background(), vars.(*py.Dict))
}

// check gives what differs from Jinja2, "" for nothing.
func (c diffCase) check() string {
	out, err := c.run()
	if c.Output != nil {
		if err != nil {
			return "got error " + err.Error() + "\nwant " + *c.Output
		}
		if out != *c.Output {
			return "got  " + out + "\nwant " + *c.Output
		}
		return ""
	}
	want := c.Error + " at " + c.Template + ":" + py.Str(int64(c.Line))
	if err == nil {
		return "got  " + out + "\nwant " + want + " " + c.Message
	}
	e, ok := err.(*Error)
	if !ok {
		return "got a foreign error " + err.Error()
	}
	got := e.Class + " at " + e.Template + ":" + py.Str(int64(e.Line))
	if got != want {
		return "got  " + got + " " + e.Msg + "\nwant " + want + " " + c.Message
	}
	if strings.HasPrefix(c.Error, "Template") || c.Error == ClassUndefined {
		if e.Msg != c.Message {
			return "got  " + e.Msg + "\nwant " + c.Message
		}
	}
	return ""
}

// TestSameAsJinja2 compares with the committed results of Jinja2 3.1, byte for byte. JINJA_CASES names a directory
// with more of them, made by generate.py from templates that are not ours to commit.
func TestSameAsJinja2(t *testing.T) {
	dirs := []string{filepath.Join("testdata", "expected")}
	if d := os.Getenv("JINJA_CASES"); d != "" {
		dirs = append(dirs, d)
	}
	total := 0
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		require.NoError(t, err)
		for _, f := range files {
			data, err := os.ReadFile(f)
			require.NoError(t, err)
			var cases []diffCase
			require.NoError(t, json.Unmarshal(data, &cases))
			total += len(cases)
			for _, c := range cases {
				t.Run(strings.TrimSuffix(filepath.Base(f), ".json")+"/"+c.Name, func(t *testing.T) {
					if diff := c.check(); diff != "" {
						t.Errorf("%s\n%s", c.Files["main"], diff)
					}
				})
			}
		}
	}
	require.GreaterOrEqual(t, total, 450, "cases are missing")
}
