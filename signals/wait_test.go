package signals_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/signals"
)

func TestRead(t *testing.T) {
	read := func(text string) ([]signals.Wait, error) {
		return signals.Read(fstest.MapFS{signals.File: {Data: []byte(text)}}, ".salt/waits.yaml", []string{"010_start", "020_next"})
	}
	got, err := read("a: {step: 010_start, count: 2, timeout: 90, on_failure: continue}\nb: {from: [web1, db.example.org], timeout: 1d}\nc: {}\n")
	require.NoError(t, err)
	require.Equal(t, []signals.Wait{
		{ID: "a", Step: "010_start", Names: []string{"1", "2"}, Timeout: 90 * time.Second, Continue: true},
		{ID: "b", Names: []string{"web1", "db.example.org"}, Named: true, Timeout: 24 * time.Hour},
		{ID: "c", Names: []string{"1"}, Timeout: time.Hour},
	}, got)
	require.Equal(t, "CORPUS_SIGNAL_A_B", signals.Undeclared("a-b").Variable())
	none, err := signals.Read(fstest.MapFS{}, ".salt/waits.yaml", nil)
	require.NoError(t, err)
	require.Empty(t, none)
	for text, want := range map[string]string{
		"- a":                            "the file must be a mapping of waits",
		"1: {}":                          "the name of a wait is a letter",
		"a/b: {}":                        "the name of a wait is a letter",
		"a: 3":                           "a must be a mapping",
		"a: {cuont: 3}":                  "unknown key cuont",
		"a: {count: 0}":                  "count must be an integer from 1 to 1000",
		"a: {count: '3'}":                "count must be an integer",
		"a: {count: 2, from: [x]}":       "a has count and from",
		"a: {from: []}":                  "from must be a list of names",
		"a: {from: [x, x]}":              "from has x twice",
		"a: {from: [../x]}":              "from must be a list of names, of letters",
		"a: {from: ['..']}":              "from must be a list of names, of letters",
		"a: {timeout: soon}":             "timeout must be a duration",
		"a: {timeout: 0}":                "timeout must be a duration",
		"a: {timeout: 9999999999999999}": "timeout must be a duration",
		"a: {timeout: 31d}":              "of at most 30d",
		"a: {on_failure: rollback}":      "on_failure must be fail or continue",
		"a: {step: 010_stort}":           "no step 010_stort",
		"a-b: {}\na_b: {}":               "a_b has the variable of another wait, CORPUS_SIGNAL_A_B",
	} {
		_, err := read(text)
		require.ErrorContains(t, err, want, text)
		at, ok := fault.PosOf(err)
		require.True(t, ok && at.Line > 0, text)
		require.Equal(t, fault.Failed, fault.KindOf(err), text)
	}
}

func TestGiven(t *testing.T) {
	got, err := signals.Undeclared("a").Given(py.NewDict("count", int64(2), "timeout", "5m"))
	require.NoError(t, err)
	require.Equal(t, signals.Wait{ID: "a", Names: []string{"1", "2"}, Timeout: 5 * time.Minute}, got)
	_, err = signals.Undeclared("a").Given(py.NewDict("count", int64(2), "from", py.NewList("x")))
	require.ErrorContains(t, err, "one of count and from")
	_, err = signals.Undeclared("a").Given(py.NewDict("on_failure", "rollback"))
	require.ErrorContains(t, err, "on_failure must be")
	_, err = signals.Undeclared("a b").Given(py.NewDict())
	require.ErrorContains(t, err, "the name of a wait")
}

func TestParse(t *testing.T) {
	for body, want := range map[string]signals.Given{
		"":    {},
		" \n": {},
		"{}":  {},
		`{"status": "FAILURE", "reason": "r", "data": [1], "id": "x"}`:       {Status: "FAILURE", Reason: "r", Data: []byte("[1]"), ID: "x"},
		`{"Status": "SUCCESS", "Reason": "r", "Data": "d", "UniqueId": "x"}`: {Status: "SUCCESS", Reason: "r", Data: []byte(`"d"`), ID: "x"},
	} {
		got, err := signals.Parse([]byte(body))
		require.NoError(t, err, body)
		require.Equal(t, want, got, body)
	}
	for _, body := range []string{"[]", "null", "x", `{"status": 1}`, `{"other": 1}`, "{", "\xff"} {
		_, err := signals.Parse([]byte(body))
		require.Equal(t, fault.Usage, fault.KindOf(err), body)
	}
}
