package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
)

func TestReadOutputs(t *testing.T) {
	out, err := ReadOutputs([]byte("# a\n\na=1\nb = x=y \r\n{\"c\": [1,\n 2], \"a\": 2}\nd=\n\n{\"e\": null}"))
	require.NoError(t, err)
	var got []string
	for _, o := range out {
		got = append(got, o.Name+"="+py.Repr(o.Value))
	}
	require.Equal(t, []string{"a=2", "b=' x=y '", "c=[1, 2]", "d=''", "e=None"}, got, "of a name that is written twice the last value counts")
	for src, want := range map[string]string{
		"a":                            "line 1: it is neither JSON nor key=value",
		"a=1\n{\"b\": }":               "line 2: it is not a JSON object",
		"a=1\n\na b=2":                 "line 3: a name has letters",
		"a.b=2":                        "a name has letters",
		"{\"a b\": 1}":                 "a name has letters",
		"a=\xff":                       "it is not valid UTF-8",
		strings.Repeat("a=1\n", 1<<15): "more than 64 KiB",
	} {
		_, err := ReadOutputs([]byte(src))
		require.ErrorContains(t, err, want, "%.40q", src)
		require.Equal(t, fault.Failed, fault.KindOf(err))
	}
}

func TestOutputsAreHeld(t *testing.T) {
	o, err := ParseOutputs(".salt/outputs.yaml", []byte(`
010_a:
  n: {type: integer, constraints: [{range: {min: 1}}]}
  list: {type: list}
  up: {type: boolean, default: false}
  pw: {secret: true}
  problem: {error_output: true}
`), []string{"010_a", "020_b"})
	require.NoError(t, err)
	read := func(text string) []Output {
		out, err := ReadOutputs([]byte(text))
		require.NoError(t, err)
		return out
	}
	held, err := o.Hold("010_a", read("n=3\nlist=a, b\npw=12\n"))
	require.NoError(t, err)
	require.Len(t, held, 4)
	require.Equal(t, int64(3), held[0].Value, "a text has its declared type")
	require.Equal(t, "['a', 'b']", py.Repr(held[1].Value))
	require.Equal(t, "12", held[2].Value, "a text stays one")
	require.True(t, held[2].Secret)
	require.Equal(t, Output{Name: "up", Value: false}, held[3], "the default")

	for text, want := range map[string]string{
		"n=x": "the output n of 010_a must be an integer, not a text", "{\"n\": 0}": "must be at least 1", "lst=a": "lst of 010_a is not declared",
	} {
		held, err := o.Hold("010_a", read("up=true\n"+text))
		require.ErrorContains(t, err, want)
		require.Equal(t, true, held[0].Value, "what is right stays")
	}
	free, err := o.Hold("020_b", read("any=x"))
	require.NoError(t, err)
	require.Len(t, free, 1, "a step that is not declared writes anything")

	require.Equal(t, "it broke", o.Failure("010_a", read("problem= it broke ")))
	require.Empty(t, o.Failure("010_a", read("problem=")))
	require.Empty(t, o.Failure("020_b", read("problem=x")))
	require.Equal(t, "x", o.Failure("020_b", read("error_output=x")))
	var none *Outputs
	require.Equal(t, "x", none.Failure("020_b", read("error_output=x")))

	for src, want := range map[string]string{
		"010_b: {}": "no step 010_b", "010_a: x": "must be a mapping of names", "010_a: {a.b: string}": "has no dots", "010_a: {a: {typ: string}}": "unknown key typ",
	} {
		_, err := ParseOutputs("x", []byte(src), []string{"010_a"})
		require.ErrorContains(t, err, want)
	}
}

// FuzzReadOutputs: no output of a step causes a panic, and names are valid.
func FuzzReadOutputs(f *testing.F) {
	for _, src := range []string{"a=1\n", `{"a": [1, {"b": null}]}`, "{\n\"a\":1}{\"b\":2}\nc=3", "#\n{"} {
		f.Add([]byte(src))
	}
	o, err := ParseOutputs("x", []byte("s: {a: integer, b: {type: list, default: []}, c: {secret: true}}"), []string{"s"})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, src []byte) {
		out, err := ReadOutputs(src)
		if err != nil {
			return
		}
		for _, w := range out {
			if !validName(w.Name) {
				t.Fatalf("%q", w.Name)
			}
		}
		_, _ = o.Hold("s", out)
		o.Failure("s", out)
	})
}
