package configfile_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"os"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"corpus-git/internal/configfile"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
)

func values(t *testing.T, text string) *py.Dict {
	t.Helper()
	doc, err := saltyaml.Parse("values", []byte(text), saltyaml.Options{})
	require.NoError(t, err)
	d, _ := doc.Value.(*py.Dict)
	if d == nil {
		d = py.NewDict()
	}
	return d
}

func TestEdit(t *testing.T) {
	for name, c := range map[string]struct {
		format configfile.Format
		old    string // "-": no file
		values string
		remove [][]string
		want   string
		err    string
	}{
		"ini, new":                 {format: "ini", old: "-", values: "{a: 1, server: {port: 80, debug: false, empty: '', ratio: 0.5}, b: x}", want: "a = 1\nb = x\n\n[server]\nport = 80\ndebug = false\nempty =\nratio = 0.5\n"},
		"ini, only sections":       {format: "ini", old: "-", values: "{a: {x: 1}, b: {}}", want: "[a]\nx = 1\n\n[b]\n"},
		"ini, comments stay":       {format: "ini", old: "; head\n[a]\n# of x\nx=1 \ny : 2\n\n[b]\nz = 3\n", values: "{a: {x: 5, new: 6}, c: {k: v}}", want: "; head\n[a]\n# of x\nx=5\ny : 2\nnew = 6\n\n[b]\nz = 3\n\n[c]\nk = v\n"},
		"ini, as it is":            {format: "ini", old: "[a]\nx=1 \n\n\n", values: "{a: {x: 1}}", want: "[a]\nx=1 \n\n\n"},
		"ini, a continued value":   {format: "ini", old: "[a]\nx = 1\n  2\ny = 3\n", values: "{a: {x: 4}}", want: "[a]\nx = 4\ny = 3\n"},
		"ini, a key without value": {format: "ini", old: "[mysqld]\nskip-networking\n", values: "{mysqld: {port: 1}}", remove: [][]string{{"mysqld", "skip-networking"}}, want: "[mysqld]\nport = 1\n"},
		"ini, remove":              {format: "ini", old: "g = 1\n[a]\nx=1\n# of b\n[b]\ny=1\n", values: "{}", remove: [][]string{{"a"}, {"g"}, {"none", "k"}}, want: "[b]\ny=1\n"},
		"ini, remove wins":         {format: "ini", old: "-", values: "{a: {x: 1, y: 2}}", remove: [][]string{{"a", "x"}}, want: "[a]\ny = 2\n"},
		"ini, CRLF":                {format: "ini", old: "[a]\r\nx=1\r\n", values: "{a: {x: 2, y: 3}}", want: "[a]\r\nx=2\r\ny = 3\r\n"},
		"ini, above all":           {format: "ini", old: "[a]\nx=1\n", values: "{g: 2}", want: "g = 2\n\n[a]\nx=1\n"},
		"ini, a space before":      {format: "ini", old: "[a]\nx =\n", values: "{a: {x: 2}}", want: "[a]\nx = 2\n"},
		"ini, quotes":              {format: "ini", old: "-", values: "{a: {x: '\"a ; b\"'}}", want: "[a]\nx = \"a ; b\"\n"},
		"ini, a list":              {format: "ini", old: "-", values: "{a: {x: [1]}}", err: "a:x: must be a text, a number or a boolean in this format, not list"},
		"ini, deeper":              {format: "ini", old: "-", values: "{a: {x: {y: 1}}}", err: "a:x: an ini file has sections with keys"},
		"ini, null":                {format: "ini", old: "-", values: "{a: {x: null}}", err: "a:x: this format has no null"},
		"ini, lines":               {format: "ini", old: "-", values: `{a: {x: "1\n[b]"}}`, err: "a:x: a value of an ini file is one line"},
		"ini, a comment":           {format: "ini", old: "-", values: `{a: {x: "a # b"}}`, err: "a:x: some readers"},
		"ini, spaces":              {format: "ini", old: "-", values: `{a: {x: " a"}}`, err: "a:x: begins or ends with a space"},
		"ini, a bad key":           {format: "ini", old: "-", values: "{a: {'x=y': 1}}", err: "a:x=y: cannot be a key"},
		"ini, a bad section":       {format: "ini", old: "-", values: `{"a]\n[b": {x: 1}}`, err: "cannot be the name of a section"},
		"ini, a number as key":     {format: "ini", old: "-", values: "{a: {1: 1}}", err: "a:1: the key must be a text, not int"},

		"json, new":          {format: "json", old: "-", values: "{b: {z: 1, a: [1, {x: null}]}, a: 'é\"</', t: true, f: 1.5}", want: "{\n  \"b\": {\n    \"z\": 1,\n    \"a\": [\n      1,\n      {\n        \"x\": null\n      }\n    ]\n  },\n  \"a\": \"é\\\"</\",\n  \"t\": true,\n  \"f\": 1.5\n}\n"},
		"json, merged":       {format: "json", old: "{\n    \"n\": 1.50, \"o\": {\"a\": 1, \"b\": 2}\n}", values: "{o: {b: 3}, x: y}", want: "{\n    \"n\": 1.50,\n    \"o\": {\n        \"a\": 1,\n        \"b\": 3\n    },\n    \"x\": \"y\"\n}\n"},
		"json, as it is":     {format: "json", old: "{\"a\":  1}", values: "{a: 1}", want: "{\"a\":  1}"},
		"json, true is no 1": {format: "json", old: "{\"a\":1}", values: "{a: true}", want: "{\n  \"a\": true\n}\n"},
		"json, remove":       {format: "json", old: "{\"a\":{\"b\":1,\"c\":2}}", values: "{}", remove: [][]string{{"a", "b"}, {"x", "y"}}, want: "{\n  \"a\": {\n    \"c\": 2\n  }\n}\n"},
		"json, empty":        {format: "json", old: "-", values: "{}", want: "{}\n"},
		"json, infinite":     {format: "json", old: "-", values: "{a: [.inf]}", err: "a:0: JSON has no inf"},
		"json, a number key": {format: "json", old: "-", values: "{a: {1: x}}", err: "a:1: the key must be a text"},
		"json, broken":       {format: "json", old: "{", values: "{}", err: "the existing file is not valid JSON"},
		"json, a list":       {format: "json", old: "[1]", values: "{}", err: "the existing file is not a JSON object"},

		"yaml, new":           {format: "yaml", old: "-", values: "{b: {z: 1, a: [x, {y: null}]}, 'yes': 'no', o: '0644', e: '1e3', t: '12:30', s: plain text, f: 1.0, m: \"a\\nb\\n\", 1: x}", want: "b:\n  z: 1\n  a:\n    - x\n    - \"y\": null\n\"yes\": \"no\"\no: \"0644\"\ne: \"1e3\"\nt: \"12:30\"\ns: plain text\nf: 1.0\nm: |\n  a\n  b\n1: x\n"},
		"yaml, comments stay": {format: "yaml", old: "# head\na: 1 # of a\nmode: 0644\nb:\n  # of c\n  c: [x, y]\n", values: "{a: 2, b: {d: 1}}", want: "# head\na: 2 # of a\nmode: 0644\nb:\n  # of c\n  c: [x, y]\n  d: 1\n"},
		"yaml, as it is":      {format: "yaml", old: "a:   1\n", values: "{a: 1}", want: "a:   1\n"},
		"yaml, an alias":      {format: "yaml", old: "a: &x {k: 1}\nb: *x\n", values: "{b: {k: 2}}", want: "a: &x {k: 1}\nb: {k: 2}\n"},
		"yaml, remove":        {format: "yaml", old: "a: {b: 1, c: 2}\n", values: "{}", remove: [][]string{{"a", "b"}}, want: "a: {c: 2}\n"},
		"yaml, empty":         {format: "yaml", old: "", values: "{a: 1}", want: "a: 1\n"},
		"yaml, a comment":     {format: "yaml", old: "# nothing\n", values: "{a: 1}", want: "a: 1\n"},
		"yaml, a list":        {format: "yaml", old: "- a\n", values: "{}", err: "the existing file is not a YAML mapping"},
		"yaml, broken":        {format: "yaml", old: "a: [\n", values: "{}", err: "the existing file is not valid YAML"},
		"yaml, two":           {format: "yaml", old: "a: 1\n---\nb: 1\n", values: "{}", err: "several YAML documents"},

		"env, new":         {format: "env", old: "-", values: `{A: 1, B: "a b", C: "it's $x", D: '', E: true, F: "a\nb"}`, want: "A=1\nB='a b'\nC=\"it's \\$x\"\nD=\nE=true\nF='a\nb'\n"},
		"env, comments":    {format: "env", old: "# head\nexport A=\"1\"\nB='x\ny'\nC=3 \n", values: "{A: 1, B: z, D: 4}", want: "# head\nexport A=\"1\"\nB=z\nC=3 \nD=4\n"},
		"env, export":      {format: "env", old: "export A=1\n", values: "{A: 2}", want: "export A=2\n"},
		"env, remove":      {format: "env", old: "A=1\nB=2\n", values: "{}", remove: [][]string{{"A"}}, want: "B=2\n"},
		"env, an open one": {format: "env", old: "A='x\nB=2\n", values: "{B: 3}", err: "A: its quote is not closed"},
		"env, a bad name":  {format: "env", old: "-", values: "{a-b: 1}", err: "a-b: is not the name of a variable"},
		"env, a mapping":   {format: "env", old: "-", values: "{A: {b: 1}}", err: "A: must be a text"},
		"env, null":        {format: "env", old: "-", values: "{A: null}", err: "A: this format has no null"},
		"no format":        {format: "xml", old: "-", values: "{}", err: `no format "xml"`},
	} {
		t.Run(name, func(t *testing.T) {
			var old []byte
			if c.old != "-" {
				old = []byte(c.old)
			}
			got, err := configfile.Edit(c.format, old, values(t, c.values), c.remove)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			again, err := configfile.Edit(c.format, got, values(t, c.values), c.remove)
			require.NoError(t, err)
			require.Equal(t, string(got), string(again), "a second run changes nothing")
		})
	}
}

// What a real shell reads in an env file is what was to be written.
func TestEnvInAShell(t *testing.T) {
	texts := []string{"plain", "a b", "it's", `"`, `\`, `\n`, "$HOME", "`id`", "a\nb", "it's\n$x \\ \"q\" `y`", "#x", "a #b", "é", "*", "~", "a=b", " a ", "!x"}
	for _, text := range texts {
		file, err := configfile.Write(configfile.Env, py.NewDict("V", text))
		require.NoError(t, err)
		at := filepath.Join(t.TempDir(), "env")
		require.NoError(t, os.WriteFile(at, file, 0o600))
		got, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", `. "$0" && printf '%s.' "$V"`, at).Output()
		require.NoError(t, err, text)
		require.Equal(t, text+".", string(got))
		// Changing another variable leaves it, whatever its quotes.
		more, err := configfile.Edit(configfile.Env, file, py.NewDict("V", text, "W", "x"), nil)
		require.NoError(t, err)
		require.Equal(t, string(file)+"W=x\n", string(more))
	}
}

// A file with a quote that is never closed is not changed, since what is added would be part of that value; unless it is the value that is set.
func TestEnvWithAnOpenQuote(t *testing.T) {
	for old, want := range map[string]string{"A='\n": "", "B=1\nA=\"x\nKEY=y\n": "", "KEY='\n": "KEY=x\n", "KEY=x\nA='\n": "KEY=x\nA='\n"} {
		got, err := configfile.Edit(configfile.Env, []byte(old), py.NewDict("KEY", "x"), nil)
		if want == "" {
			require.ErrorContains(t, err, "A: its quote is not closed", old)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

func FuzzEdit(f *testing.F) {
	for _, s := range []string{"a: 1", "[a]\nx=1\n", "{\"a\": {\"b\": [1]}}", "A='x\ny'\n", "", "\x00", "a: &x [*x]", "a: &x 1\nb: *x"} {
		f.Add(s, "a text", "key")
	}
	f.Add("A='", "\n\na text", "key")
	f.Fuzz(func(t *testing.T, old, text, key string) {
		for _, format := range configfile.Formats() {
			want := py.NewDict("s", py.NewDict(key, text))
			if format == string(configfile.Env) {
				want = py.NewDict("KEY", text)
			}
			got, err := configfile.Edit(configfile.Format(format), []byte(old), want, nil)
			if err != nil {
				continue
			}
			again, err := configfile.Edit(configfile.Format(format), got, want, nil)
			require.NoError(t, err, format)
			require.Equal(t, string(got), string(again), format)
			switch format {
			case "json":
				var v map[string]any
				require.NoError(t, json.Unmarshal(got, &v))
			case "yaml":
				var v map[string]any
				require.NoError(t, yaml.Unmarshal(got, &v))
				if strings.ToValidUTF8(text, "") == text && strings.ToValidUTF8(key, "") == key {
					require.Equal(t, text, v["s"].(map[string]any)[key])
				}
			}
		}
	})
}
