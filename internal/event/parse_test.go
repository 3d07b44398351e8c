package event

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzParse checks that a line is read as encoding/json reads it, or refused by both.
func FuzzParse(f *testing.F) {
	whole := Event{
		Seq: 7, Time: time.Date(2026, 5, 1, 12, 0, 0, 123, time.UTC), Kind: StepDone, Status: Changed, Procedure: "install", Step: "100_build", State: "a", Function: "cmd.run", N: 1, Of: 2, Changed: 3,
		Duration: -5, Stream: "stderr", Text: "tab\t <b>\"'&\\ \u2028 é €",
	}
	for _, e := range []Event{{}, whole, {Kind: Output, Text: "plain"}, {Kind: Failure, Lines: []string{"a", "b"}}} {
		line, err := json.Marshal(e)
		require.NoError(f, err)
		f.Add(string(line))
	}
	for _, line := range []string{
		"", "{", "{}", "null", `{"seq":01}`, `{"seq":-1}`, `{"seq":1e3}`, `{"n":-0}`, `{"n":-}`, `{"seq":18446744073709551615}`, `{"text":"\ud83d\ude00"}`, `{"text":"\ud83d"}`, `{"text":"\u00e9\/\b"}`, `{"text":"\x"}`, `{"text":"a`,
		`{"text":"\`, `{"text":"\u12`, `{"TEXT":"a"}`, `{"te\u0078t":"a"}`, `{"text":"a","text":"b"}`, `{"text":1}`, `{"time":"never"}`, `{"other":{"a":[1]}}`, `{"text":"a"} `, `{"text":"a"}x`, "{\"text\":\"\xff\"}", "{\"text\":\"\\n\xff\"}",
		"{\"text\":\"a\x01\"}", "{\"text\":\"\\n\x01\"}", `{"text":"a",}`, `{ "text": "a" }`, `{"duration_ns":999999999999999999}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var want, got Event
		werr := json.Unmarshal([]byte(line), &want)
		err := parse([]byte(line), &got)
		require.Equal(t, werr == nil, err == nil, "%v, %v", werr, err)
		if werr == nil {
			require.Equal(t, want, got)
		}
	})
}

// Lines of a log are read without encoding/json.
func TestParseReadsWhatIsWritten(t *testing.T) {
	for _, e := range []Event{
		{Seq: 1, Time: time.Now(), Kind: Output, Procedure: "install", Step: "100", Stream: "stdout", Text: `gcc -o "x" <y> & z`},
		{Seq: 2, Time: time.Now().UTC(), Kind: StepDone, Status: OK, Step: "100", N: 1, Of: 2, Duration: time.Second, Text: "é"},
	} {
		line, err := json.Marshal(e)
		require.NoError(t, err)
		p := parser{b: line}
		var got Event
		require.True(t, p.event(&got), "%s", line)
	}
}

func BenchmarkParse(b *testing.B) {
	line, err := json.Marshal(Event{Seq: 1, Time: time.Now(), Kind: Output, Procedure: "install", Step: "100_build", Stream: "stdout", Text: `cc -O2 -Wall "-DNAME=<x>" -c -o build/obj/some/file/name.o src/some/file/name.c`})
	require.NoError(b, err)
	for b.Loop() {
		var e Event
		if err := parse(line, &e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	line, err := json.Marshal(Event{Seq: 1, Time: time.Now(), Kind: Output, Procedure: "install", Step: "100_build", Stream: "stdout", Text: `cc -O2 -Wall "-DNAME=<x>" -c -o build/obj/some/file/name.o src/some/file/name.c`})
	require.NoError(b, err)
	for b.Loop() {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			b.Fatal(err)
		}
	}
}
