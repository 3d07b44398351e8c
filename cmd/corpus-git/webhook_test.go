package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdWebHook takes what is posted, as notify.url has it: $HOOK is the address, FILE gets each body in a line of its own, with its headers in front.
func cmdWebHook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: web-hook FILE")
	}
	file, err := os.OpenFile(ts.MkAbs(args[0]), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	ts.Check(err)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = r.Header.Write(file)
		}
		if err == nil {
			_, err = file.Write(append(body, '\n'))
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	ts.Defer(func() {
		s.Close()
		_ = file.Close()
	})
	ts.Setenv("HOOK", s.URL)
}
