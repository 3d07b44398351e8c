package main

import (
	"bytes"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdGitHTTP serves the repositories below a folder with git-http-backend, to the user marie with the password hunter2, and to everybody
// below its subfolder open: $HTTP is the address. While there is a file DIR/stall, packs stop halfway: once that half is sent there is a
// file DIR/stalled, and nothing more comes until the client hangs up. Its second use ends the first.
func cmdGitHTTP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: git-http DIR")
	}
	out, err := exec.Command("git", "--exec-path").Output()
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	env := []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + ts.Getenv("HOME"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); !strings.HasPrefix(r.URL.Path, "/open/") && (user != "marie" || pass != "hunter2") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h := &cgi.Handler{Path: backend, Env: append(env, "GIT_PROTOCOL="+r.Header.Get("Git-Protocol"))}
		if _, err := os.Stat(filepath.Join(dir, "stall")); err != nil {
			h.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		body := rec.Body.Bytes()
		at := bytes.Index(body, []byte("PACK"))
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		if at < 0 {
			_, _ = w.Write(body)
			return
		}
		_, _ = w.Write(body[:at+(len(body)-at)/2])
		_ = http.NewResponseController(w).Flush()
		_ = os.WriteFile(filepath.Join(dir, "stalled"), nil, 0o644)
		<-r.Context().Done()
	}))
	ts.Defer(s.Close)
	ts.Setenv("HTTP", s.URL)
	ts.Setenv("HTTP_ADDR", s.Listener.Addr().String())
}
