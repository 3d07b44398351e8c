package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/signals"
)

// waits has one address, and takes what comes as err says.
type waits struct {
	err     error
	given   []signals.Given
	entries []audit.Entry
}

func (w *waits) Parse(path string) (signals.Address, error) {
	if path != "/signals/a/b/1/good" {
		return signals.Address{}, signals.ErrForged
	}
	return signals.Address{Deployment: "a", Wait: "b", Name: "1"}, nil
}

func (w *waits) Accept(_ context.Context, _ signals.Address, g signals.Given) (signals.Answer, project.Name, error) {
	w.given = append(w.given, g)
	return signals.Answer{Version: 1, Counted: w.err == nil, Missing: []string{}}, "app", w.err
}

func (w *waits) Record(_ context.Context, e audit.Entry) error {
	w.entries = append(w.entries, e)
	return nil
}

// The attack: the port is open to everybody, and somebody guesses addresses, sends what fills the memory, and reads what the server says of its own faults.
func TestSignals(t *testing.T) {
	w := &waits{}
	s := server(newMachine())
	s.Signals, s.Audit = w, w
	shared := 0
	s.Shared = func() { shared = len(w.given) }
	h := s.Handler()
	send := func(method, path, body string) (int, string, http.Header) {
		r := httptest.NewRequest(method, "http://127.0.0.1:8080"+path, strings.NewReader(body))
		out := httptest.NewRecorder()
		h.ServeHTTP(out, r)
		text, err := io.ReadAll(out.Body)
		require.NoError(t, err)
		return out.Code, string(text), out.Header()
	}
	const good = "/signals/a/b/1/good"
	code, text, head := send("POST", good, `{"id": "x"}`)
	require.Equal(t, 200, code)
	require.Contains(t, text, `"counted":true`)
	require.Equal(t, 1, shared, "it is confirmed before it is shared")
	require.Equal(t, "no-store", head.Get("Cache-Control"))
	require.Equal(t, []signals.Given{{ID: "x", By: "address"}}, w.given)
	require.Equal(t, audit.Entry{Action: "signal", From: "192.0.2.1", Project: "app", Object: "b/1", Deployment: "a", Outcome: "ok"}, w.entries[0])
	for _, x := range []struct {
		method, body string
		err          error
		code         int
		text         string
	}{
		{"GET", "", nil, 405, "POST or PUT"},
		{"DELETE", "", nil, 405, "POST or PUT"},
		{"POST", strings.Repeat(" ", signals.MaxBody+1), nil, 413, "at most"},
		{"POST", "[]", nil, 400, "no JSON object"},
		{"PUT", "", fault.New(fault.Conflict, "signal", "it comes too late"), 409, "too late"},
		{"PUT", "", fault.New(fault.Usage, "signal", "status must be"), 400, "status must be"},
		{"PUT", "", io.ErrUnexpectedEOF, 500, "see the server's log"},
	} {
		w.err = x.err
		code, text, _ := send(x.method, good, x.body)
		require.Equal(t, x.code, code, "%+v", x)
		require.Contains(t, text, x.text)
		require.NotContains(t, text, "EOF")
	}
	before := len(w.entries)
	seen := map[int]int{}
	for range 40 {
		code, _, _ := send("POST", "/signals/a/b/1/guessed", "")
		seen[code]++
	}
	require.Equal(t, map[int]int{403: 30, 429: 10}, seen)
	require.Len(t, w.entries, before, "who guesses does not fill the audit log")
	w.err = nil
	code, _, _ = send("POST", good, "")
	require.Equal(t, 200, code, "who has the address is not kept waiting")
}

// The attack: the address of a signal that was sent stands in the log of a build. Whoever reads that sends it again, some hundred times a second for days: each was an entry of the audit log.
func TestAUsedAddressFillsNothing(t *testing.T) {
	w := &waits{err: fault.New(fault.Conflict, "signal", "it comes too late")}
	s := server(newMachine())
	s.Signals, s.Audit = w, w
	h := s.Handler()
	send := func(from string) int {
		r := httptest.NewRequest("POST", "http://127.0.0.1:8080/signals/a/b/1/good", nil)
		r.RemoteAddr = from
		out := httptest.NewRecorder()
		h.ServeHTTP(out, r)
		return out.Code
	}
	seen := map[int]int{}
	for i := range 40 {
		seen[send([]string{"192.0.2.1:1", "192.0.2.2:1"}[i%2])]++
	}
	require.Equal(t, map[int]int{409: 30, 429: 10}, seen, "from wherever they come")
	require.Len(t, w.entries, 30)
	w.err = nil
	require.Equal(t, 200, send("192.0.2.1:1"), "one that counts is not kept waiting")
}
