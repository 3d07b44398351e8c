package jinja

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
)

// seeds adds the templates of the comparison with Jinja2.
func seeds(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "expected", "*.json"))
	require.NoError(f, err)
	n := 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		var cases []diffCase
		require.NoError(f, json.Unmarshal(data, &cases))
		for _, c := range cases {
			f.Add(c.Files["main"])
			n++
		}
	}
	require.Greater(f, n, 400, "seeds are missing")
}

// FuzzParse: no text makes the parser panic, and its errors have a place.
func FuzzParse(f *testing.F) {
	seeds(f)
	env := New(Options{TrimBlocks: true, LstripBlocks: true})
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, err := env.Parse("x", src)
		if err == nil {
			tmpl.Calls()
			tmpl.References()
			return
		}
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "x", e.Template)
		require.Positive(t, e.Line)
	})
}

// FuzzRender: no template makes a render panic, outlive its limits, or show a secret in an error.
func FuzzRender(f *testing.F) {
	seeds(f)
	for _, src := range hostile {
		if len(src) < 4096 {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		const secret = "S3cr3t-v4lue"
		env := New(Options{Loader: MapLoader{"main": src, "inc": src}, Limits: Limits{Fuel: 50000, Memory: 1 << 20, Output: 1 << 20}})
		tmpl, err := env.Get(context.Background(), "main")
		if err != nil {
			return
		}
		vars := py.NewDict("s", secret, "l", py.NewList(secret, int64(1)), "d", py.NewDict("k", secret), "n", int64(3),
			"items", py.NewList("a", "b"), "name", secret)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err = tmpl.Render(ctx, vars)
		if err == nil {
			return
		}
		var e *Error
		require.ErrorAs(t, err, &e)
		require.NotEqual(t, ClassCanceled, e.Class)
		if e.Class != ClassNotFound && e.Class != ClassNotFounds {
			require.NotContains(t, e.Error(), secret)
		}
	})
}
