package salt

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplitterGivesWholeLines(t *testing.T) {
	text := "one\ntwo\n\n{\"t\":\"end\"}\nrest"
	for name, write := range map[string]func(s *splitter){
		"at once":     func(s *splitter) { _, _ = s.Write([]byte(text)) },
		"in pieces":   func(s *splitter) { copyAll(t, s, 3, text) },
		"by the byte": func(s *splitter) { copyAll(t, s, 1, text) },
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			s := &splitter{emit: func(l []byte) { got = append(got, string(l)) }}
			write(s)
			require.Equal(t, []string{"one", "two", "", `{"t":"end"}`}, got)
		})
	}
}

func copyAll(t *testing.T, s *splitter, n int, text string) {
	for b := []byte(text); len(b) > 0; {
		k := min(n, len(b))
		_, err := s.Write(b[:k])
		require.NoError(t, err)
		b = b[k:]
	}
}

func TestSplitterBoundsALine(t *testing.T) {
	s := &splitter{emit: func([]byte) {}}
	big := bytes.Repeat([]byte("x"), maxAnswer)
	_, err := s.Write(big)
	require.NoError(t, err)
	_, err = s.Write([]byte("y"))
	require.ErrorContains(t, err, "more than")
}

func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{
		`{"t":"ready","salt":"3008.3"}`, `{"t":"start","state":"file","fun":"managed","id":"a","name":"/a","sls":"t","of":3}`,
		`{"t":"done","tag":"cmd_|-a_|-b_|-run","ret":{"result":null}}`, `{"t":"result","ret":{"local":["Rendering failed"]}}`,
		`{"t":"end","signal":9}`, `{"t":"what"}`, `{"t":3}`, `{`, ``, "Traceback (most recent call last):",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, ok := parseAnswer(line)
		if ok && (a.Kind == "" || a.Kind == logged) {
			t.Fatalf("%q became %+v", line, a)
		}
		// However it is cut, a text gives the same lines.
		var whole, cut [][]byte
		s := &splitter{emit: func(l []byte) { whole = append(whole, bytes.Clone(l)) }}
		_, _ = s.Write(line)
		c := &splitter{emit: func(l []byte) { cut = append(cut, bytes.Clone(l)) }}
		for i := range line {
			_, _ = c.Write(line[i : i+1])
		}
		if !bytes.Equal(bytes.Join(whole, []byte("\n")), bytes.Join(cut, []byte("\n"))) || len(whole) != len(cut) {
			t.Fatalf("%q: %q, %q", line, whole, cut)
		}
	})
}
