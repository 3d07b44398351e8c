package api_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/web/api"
	"corpus-git/web/api/generate"
)

var update = flag.Bool("update", false, "write the document and the client anew")

// The committed document and client are those of the handlers.
func TestGenerated(t *testing.T) {
	document, err := api.Document("1")
	require.NoError(t, err)
	source, err := generate.Client(document)
	require.NoError(t, err)
	for file, want := range map[string][]byte{"../../docs/openapi.json": append(document, '\n'), "client/generated.go": source} {
		if *update {
			require.NoError(t, os.WriteFile(file, want, 0o644))
		}
		have, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), string(have), "%s: write it with  go test ./web/api -run TestGenerated -update", file)
	}
}
