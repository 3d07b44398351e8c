package schema

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
)

const all = `
port: {type: integer, default: 8080, constraints: [{range: {min: 1024, max: 65535}}]}
workers: {type: Number, default: 4, constraints: [{modulo: {step: 2}}, {range: {min: 2}}]}
odd: {type: number, default: 3, constraints: [{modulo: {step: 2, offset: 1}, description: "odd numbers only"}]}
host:
  description: The public name.
  constraints:
    - allowed_pattern: '[a-z.]+'
    - length: {max: 10}
mode: {default: fast, constraints: [{allowed_values: [fast, slow]}]}
hosts: {type: comma_delimited_list, default: [], constraints: [{length: {max: 2}}, {allowed_pattern: '[a-z]+'}]}
db.password: {secret: true}
db.tls: {type: boolean, default: false}
extra: {type: json, default: null}
opts: {type: mapping, default: {a: 1}}
short: integer
`

func TestInputs(t *testing.T) {
	in, err := ParseInputs(".salt/inputs.yaml", []byte(all))
	require.NoError(t, err)
	require.Len(t, in.Fields, 11)
	list := func(v ...any) *py.List { l := py.NewList(); l.Append(v...); return l }
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"port", int64(8080), ""},
		{"port", int64(80), "must be 1024 to 65535"},
		{"port", new(big.Int).Lsh(big.NewInt(1), 80), "must be 1024 to 65535"},
		{"port", "8080", "must be an integer, not a text: write it without quotes"},
		{"port", "http", "must be an integer, not a text"},
		{"port", 1.5, "must be an integer, not a number"},
		{"port", nil, "must be an integer, and has no value"},
		{"workers", 4.0, ""},
		{"workers", int64(3), "must be a multiple of 2"},
		{"workers", int64(0), "must be at least 2"},
		{"odd", int64(-1), ""},
		{"odd", int64(2), "is not allowed: odd numbers only"},
		{"host", "a.b", ""},
		{"host", "a.b\n", "must match [a-z.]+"},
		{"host", "a b", "must match [a-z.]+"},
		{"host", "abcdefghijk", "must have at most 10 characters"},
		{"host", int64(1), "must be a text: put it into quotes"},
		{"host", true, "must be a text: put it into quotes"},
		{"mode", "slow", ""},
		{"mode", "FAST", "must be one of: fast, slow"},
		{"hosts", list("a", "b"), ""},
		{"hosts", list("a", "b", "c"), "must have at most 2 items"},
		{"hosts", list("a", "B"), "must match [a-z]+"},
		{"hosts", "a,b", "must be a list, not a text"},
		{"db.tls", "yes", "must be true or false, not a text: write it without quotes"},
		{"extra", nil, ""},
		{"extra", py.NewDict("a", int64(1)), ""},
		{"extra", "x", "must be a list or a mapping, not a text"},
		{"opts", list(), "must be a mapping, not a list"},
	} {
		f := in.Field(strings.Split(c.name, "."))
		require.NotNil(t, f, c.name)
		require.Equal(t, c.want, f.Check(c.v), "%s %v", c.name, c.v)
	}
	require.Nil(t, in.Field([]string{"db", "user"}))
	require.NotNil(t, in.Field([]string{"opts", "a", "b"}))
	require.True(t, in.Secret([]string{"db"}), "a mapping with a secret in it")
	require.True(t, in.Secret([]string{"db", "password", "x"}))
	require.False(t, in.Secret([]string{"db", "tls"}))
	require.Equal(t, "port", in.Nearest([]string{"prot"}))
	require.Equal(t, "db.password", in.Nearest([]string{"db", "pasword"}))
	require.Equal(t, "db.password", in.Nearest([]string{"password"}))
	require.Empty(t, in.Nearest([]string{"somewhere"}))
	text, err := py.ToJSON(in.Defaults(false), py.JSONOptions{})
	require.NoError(t, err)
	require.Equal(t, `{"port": 8080, "workers": 4, "odd": 3, "mode": "fast", "hosts": [], "db": {"tls": false}, "extra": null, "opts": {"a": 1}}`, text)
	var none *Inputs
	require.Nil(t, none.Field([]string{"a"}))
	require.False(t, none.Secret([]string{"a"}))
	require.Zero(t, none.Defaults(true).Len())
}

func TestInputsAreRefused(t *testing.T) {
	for src, want := range map[string]string{
		"- a":                                            "the file must be a mapping",
		"port: {typ: integer}":                           "unknown key typ",
		"port: {type: intger}":                           "unknown type intger",
		"port: {type: integer, default: x}":              "the default of port must be an integer, not a text",
		"p: {secret: true, default: hunter2}":            "which everybody can read",
		"a b: {}":                                        "a name has letters",
		"a..b: {}":                                       "a name has letters",
		"a: {}\na.b: {}":                                 "a and a.b overlap",
		"a: [x]":                                         "must be a mapping with type",
		"a: {constraints: {range: {min: 1}}}":            "constraints must be a list",
		"a: {constraints: [{rang: {min: 1}}]}":           "unknown key rang",
		"a: {constraints: [{range: {min: 1}}]}":          "range does not apply to a text",
		"a: {constraints: [{length: {}}]}":               "length needs min, max or both",
		"a: {constraints: [{length: {min: a}}]}":         "min must be a number",
		"a: {constraints: [{length: {min: 2, max: 1}}]}": "min is more than max",
		"a: {type: integer, constraints: [{modulo: {offset: 1}}]}":           "modulo needs a step",
		"a: {constraints: [{allowed_values: a}]}":                            "must be a list of values",
		"a: {constraints: [{allowed_pattern: '('}]}":                         "it is not a regular expression",
		"a: {constraints: [{length: {min: 1}, allowed_values: [x]}]}":        "a constraint contains one rule",
		"a: {constraints: [{description: x}]}":                               "a constraint must have one of",
		"a: {error_output: true}":                                            "unknown key error_output",
		"a: {type: integer, default: 1, constraints: [{range: {min: 2.5}}]}": "the default of a must be at least 2.5",
	} {
		_, err := ParseInputs(".salt/inputs.yaml", []byte(src))
		require.ErrorContains(t, err, want, src)
		require.Equal(t, fault.Failed, fault.KindOf(err), src)
		at, ok := fault.PosOf(err)
		require.True(t, ok && at.File == ".salt/inputs.yaml" && at.Line > 0, src)
	}
	in, err := ParseInputs("x", nil)
	require.NoError(t, err)
	require.Empty(t, in.Fields, "an empty file takes no inputs")
}

func TestAllowedPattern(t *testing.T) {
	_, err := ParseInputs("x", []byte("a: {constraints: [{allowed_pattern: 'a)|(b'}]}"))
	require.ErrorContains(t, err, "it is not a regular expression", "only a group around it makes it one")
	_, err = ParseInputs("x", []byte("a: {constraints: [{allowed_pattern: '['}]}"))
	require.ErrorContains(t, err, "position 0", "a position in what was written")
	for _, c := range []struct{ pattern, value, want string }{
		{"a|b", "b", ""},
		{"a|b", "ab", "must match a|b"},
		{"^a+$", "aa\n", "must match ^a+$"},
		{"(?i)ab", "AB", ""},
		{"(?i)ab", "ABC", "must match (?i)ab"},
	} {
		in, err := ParseInputs("x", []byte("a: {constraints: [{allowed_pattern: '"+c.pattern+"'}]}"))
		require.NoError(t, err, c.pattern)
		require.Equal(t, c.want, in.Fields[0].Check(c.value), c.pattern)
	}
	in, err := ParseInputs("x", []byte("a: number"))
	require.NoError(t, err)
	require.Equal(t, "must be a number that is finite", in.Fields[0].Check(math.NaN()))
}

// FuzzParseInputs: no text makes the parser panic; what it accepts checks any value without a
// panic.
func FuzzParseInputs(f *testing.F) {
	for _, src := range []string{all, "a: {type: json, constraints: [{length: {min: 1}}]}", "a.b: integer", "&x a: *x", "a: {constraints: [{allowed_pattern: '(?=a)b'}]}"} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		in, err := ParseInputs("x", src)
		if err != nil {
			return
		}
		for _, field := range in.Fields {
			if text, _ := field.Default.(string); field.HasDefault && field.Check(field.Default) != "" && !strings.Contains(text, "{") {
				t.Fatalf("%s: its default is refused", field.Name)
			}
			for _, v := range []any{nil, "a", int64(1), 1.5, true, py.NewList(), py.NewDict()} {
				field.Check(v)
			}
			_ = in.Nearest(field.Path())
		}
		in.Defaults(false)
	})
}
