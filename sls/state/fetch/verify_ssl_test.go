package fetch_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls/state/core"
	"corpus-git/sls/state/file"
	"corpus-git/sls/state/statetest"
)

func TestVerifySSL(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x\n")) }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	for _, tt := range []struct {
		verify any
		result core.Tri
	}{{nil, core.False}, {true, core.False}, {false, core.True}} {
		path := filepath.Join(t.TempDir(), "f")
		r := statetest.Do(t, file.States, false, "file.managed", path, "source", srv.URL+"/f", "skip_verify", true, "verify_ssl", tt.verify)
		require.Equal(t, tt.result, r.Result, r.Comment)
		if tt.result == core.True {
			require.FileExists(t, path)
		}
	}
}
