package saltyaml_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
)

type loaderCase struct {
	In    string `json:"in"`
	Want  string `json:"want"`
	Error string `json:"error"`
	Line  int    `json:"line"`
}

func loadCases(t testing.TB) []loaderCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/loader.json")
	require.NoError(t, err)
	var cases []loaderCase
	require.NoError(t, json.Unmarshal(raw, &cases))
	require.Greater(t, len(cases), 1000, "the suite is incomplete: run testdata/generate.py")
	return cases
}

// differences are the cases that go.yaml.in reads differently from libyaml. Each must still differ: a line that
// no longer does is removed.
var differences = map[string]string{
	"[!!str, 1]\n": "a comma belongs to the tag",
}

// TestAgainstSalt compares every case with the result of PyYAML under Salt's rules.
func TestAgainstSalt(t *testing.T) {
	lines, right := 0, 0
	for _, c := range loadCases(t) {
		doc, err := saltyaml.Parse("f.sls", []byte(c.In), saltyaml.Options{})
		if why, ok := differences[c.In]; ok {
			same := err == nil && c.Error == "" && py.Repr(doc.Value) == c.Want || err != nil && c.Error != ""
			require.False(t, same, "%q differs no more: %s", c.In, why)
			continue
		}
		if c.Error == "" {
			if err != nil {
				t.Errorf("%q: want %s, got the error %v", c.In, c.Want, err)
			} else if got := py.Repr(doc.Value); got != c.Want {
				t.Errorf("%q: want %s, got %s", c.In, c.Want, got)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q: want the error %s, got %s", c.In, c.Error, py.Repr(doc.Value))
			continue
		}
		require.Equal(t, fault.Failed, fault.KindOf(err), "%q", c.In)
		p, ok := fault.PosOf(err)
		require.True(t, ok, "%q: %v", c.In, err)
		require.Positive(t, p.Line, "%q: %v", c.In, err)
		if c.Line > 0 {
			lines++
			if p.Line == c.Line {
				right++
			} else if testing.Verbose() {
				t.Logf("line %d, want %d: %q: %v; want %s", p.Line, c.Line, c.In, err, c.Error)
			}
		}
	}
	t.Logf("%d of %d error lines as in PyYAML", right, lines)
	require.GreaterOrEqual(t, 100*right, 98*lines)
}

// child is the entry of a mapping under a key.
func child(n *saltyaml.Node, key string) (k, v *saltyaml.Node, ok bool) {
	for i, k := range n.Keys {
		if k.Value == key {
			return k, n.Items[i], true
		}
	}
	return nil, nil, false
}

func TestPositions(t *testing.T) {
	doc, err := saltyaml.Parse("a.sls", []byte("# c\n/etc/x:\n  file.managed:\n    - source: a\n    - mode: 0644\nb: [1, é, {k: v}]\n"), saltyaml.Options{})
	require.NoError(t, err)
	k, v, ok := child(doc.Root, "/etc/x")
	require.True(t, ok)
	require.Equal(t, fault.Pos{File: "a.sls", Line: 2, Col: 1, Text: "/etc/x:"}, doc.Pos(k))
	k, args, ok := child(v, "file.managed")
	require.True(t, ok)
	require.Equal(t, 3, k.Line)
	k, v, ok = child(args.Items[1], "mode")
	require.True(t, ok)
	require.Equal(t, int64(644), v.Value)
	require.Equal(t, fault.Pos{File: "a.sls", Line: 5, Col: 7, Text: "    - mode: 0644"}, doc.Pos(k))
	_, b, _ := child(doc.Root, "b")
	require.Equal(t, 11, b.Items[2].Col, "columns count characters")
	require.Len(t, b.Items, 3)
	require.Equal(t, fault.Pos{File: "a.sls"}, doc.Pos(nil))
}

func TestErrorsShowTheLine(t *testing.T) {
	for _, c := range []struct{ in, text, msg, hint string }{
		{"a: 1\nb: 2\na: 3\n", "a: 3", "found conflicting ID 'a'", "it stands on line 1 already"},
		{"a:\n\tb: 1\n", "\tb: 1", "cannot start any token", "indent with spaces"},
		{"a: 1\nb: c: d\n", "b: c: d", "mapping values are not allowed", "must be quoted"},
		{"a: [1, 2\nb: 3\n", "b: 3", "did not find expected ',' or ']'", "not closed"},
		{"a: 1\nb: {{ c }}\n", "b: {{ c }}", "found unacceptable key", "begins with {{"},
		{"a: !vault x\n", "a: !vault x", "could not determine a constructor for the tag '!vault'", "begins with !"},
		{"a: 1\n---\nb: 1\n", "---", "another document", "remove"},
		{"a: 'x\nb: 1\n", "", "found unexpected end of stream", "is not closed"},
		{"a: 1\nb: *c\n", "b: *c", "unknown anchor 'c'", "begins with *"},
		{"a: \xff\n", "a: \xff", "not UTF-8", ""},
		{"a: 1\nb: \x02\n", "b: \x02", "U+0002", ""},
	} {
		_, err := saltyaml.Parse("f.sls", []byte(c.in), saltyaml.Options{})
		require.ErrorContains(t, err, c.msg, "%q", c.in)
		p, _ := fault.PosOf(err)
		require.Equal(t, c.text, p.Text, "%q %v", c.in, err)
		require.Contains(t, fault.HintOf(err), c.hint, "%q", c.in)
	}
}

// TestPrivateErrorsHoldNoContent looks for every word of a broken pillar in its error.
func TestPrivateErrorsHoldNoContent(t *testing.T) {
	for _, in := range []string{
		"s3cret: 1\ns3cret: 2\n", "a: s3cret: b\n", "a: *s3cret\n", "a: !s3cret x\n", "a: !!int s3cret\n", "a: !!bool s3cret\n", "a: !!float s3cret\n",
		"a: 's3cret\n", "a: {{ s3cret }}\n", "\ts3cret: 1\n", "a: [s3cret\n", "a: &s3cret 1\nb: &s3cret 2\n", "a: \"\\qs3cret\"\n",
		"%s3cret\n--- a\n---\n", "a: 1\n---\ns3cret\n", "[s3cret]: 1\n", "a: !<s3cret> b\n", "a: !e!s3cret b\n", "%TAG s3cret x\n---\na\n", "b:\n  <<: s3cret\n", "a: |s3cret\n", "s3cret \xff", "s3cret \x01",
	} {
		_, err := saltyaml.Parse("init.sls", []byte(in), saltyaml.Options{Private: true})
		require.Error(t, err, "%q", in)
		p, ok := fault.PosOf(err)
		require.True(t, ok)
		require.Empty(t, p.Text)
		require.Positive(t, p.Line)
		require.NotContains(t, err.Error()+fault.HintOf(err), "s3cret", "%q", in)
	}
}

func TestLimits(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	merge := "a: &a {"
	for i := range 3000 {
		merge += fmt.Sprintf("k%d: 1, ", i)
	}
	merge += "}\n"
	for i := range 3000 {
		merge += fmt.Sprintf("m%d: {<<: *a}\n", i)
	}
	for name, in := range map[string]string{
		"aliases": bomb, "merges": merge, "flow depth": strings.Repeat("[", 5000), "closed flow depth": strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"block depth": strings.Repeat("- ", 5000) + "a", "self": "a: &a [*a]\n", "self in a mapping": "a: &a {b: *a}\n", "merge of itself": "a: &a {<<: *a}\n",
		"merge loop": "a: &a {x: &b {<<: *a}, <<: *b}\n", "digits": "a: " + strings.Repeat("9", 5000) + "\n",
	} {
		_, err := saltyaml.Parse("f", []byte(in), saltyaml.Options{})
		require.Error(t, err, name)
		require.Equal(t, fault.Failed, fault.KindOf(err), name)
	}
	_, err := saltyaml.Parse("f", []byte("a: 12345"), saltyaml.Options{MaxBytes: 4})
	require.ErrorContains(t, err, "larger than 4 bytes")
	_, err = saltyaml.Parse("f", []byte("[[[a]]]"), saltyaml.Options{MaxDepth: 2})
	require.ErrorContains(t, err, "deeper than 2")
	_, err = saltyaml.Parse("f", []byte("[[a]]"), saltyaml.Options{MaxDepth: 2})
	require.NoError(t, err)
}

func TestAliasesShareOneValue(t *testing.T) {
	doc, err := saltyaml.Parse("f", []byte("a: &x [1]\nb: *x\n"), saltyaml.Options{})
	require.NoError(t, err)
	d := doc.Value.(*py.Dict)
	a, _ := d.GetStr("a")
	b, _ := d.GetStr("b")
	require.Same(t, a, b)
}

// FuzzParse checks that no input panics, that every error has a place, and that what is read is limited.
func FuzzParse(f *testing.F) {
	for _, c := range loadCases(f) {
		if len(c.In) < 200 {
			f.Add(c.In)
		}
	}
	f.Add(",\r\r\r\r\r\r") // the parser's line is after the last line feed
	f.Fuzz(func(t *testing.T, in string) {
		doc, err := saltyaml.Parse("f", []byte(in), saltyaml.Options{})
		if err != nil {
			if p, ok := fault.PosOf(err); !ok || p.Line < 1 || fault.KindOf(err) != fault.Failed {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		if n := count(t, doc.Root, 0); n > 10_000+16*len(in)+1 {
			t.Fatalf("%d nodes from %d bytes", n, len(in))
		}
	})
}

func count(t *testing.T, n *saltyaml.Node, depth int) int {
	if n == nil {
		return 0
	}
	if depth > 201 {
		t.Fatal("too deep")
	}
	total := 1
	for _, k := range n.Keys {
		total += count(t, k, depth+1)
	}
	for _, c := range n.Items {
		total += count(t, c, depth+1)
	}
	return total
}
