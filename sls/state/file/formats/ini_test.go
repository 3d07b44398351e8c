package formats

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
)

func TestIniRefusesMappingsAsValues(t *testing.T) {
	f, err := NewIni(py.NewDict())
	require.NoError(t, err)
	for _, v := range []any{py.NewDict("k", "v"), py.NewList(py.NewDict("k", "v")), py.Tuple{py.NewList(py.NewDict())}} {
		_, err = f.Write(py.NewDict("s", py.NewDict("Key", v)))
		require.EqualError(t, err, "The option 'key' of the section 's' is a mapping, which a file of this format can't hold")
	}
}

// What is read is told without its values, and what was read is written so that it reads the same.
func FuzzIni(f *testing.F) {
	for _, s := range []string{"[a]\nb = 1\n", "[DEFAULT]\nx=%(y)s\n[s]\ny: 2\n  more\n\n", "a\n", "[a]\n=\n", "[a]\nb=%(b)s", "[a]\n# x\n;y\nb\n"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, text string, raw bool) {
		opts := py.NewDict()
		if raw {
			opts.SetStr("interpolation", nil)
		}
		ini, err := NewIni(opts)
		require.NoError(t, err)
		got, err := ini.Read("f", text)
		if err != nil {
			return
		}
		again, err := ini.Write(got)
		if err != nil || !raw || strings.ContainsAny(text, "\r\x00") {
			return
		}
		_, err = ini.Read("f", again)
		if err != nil { // a line of a value that looks like a comment, a section or an option
			require.True(t, strings.ContainsAny(text, "[=:#;"), "%q", text)
		}
	})
}
