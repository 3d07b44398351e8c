package codecs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The expected texts are those of Python's bytes.decode(name, "replace").
func TestDecoder(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"latin-1", "\xe9t\xe9\x80", "été\u0080"},
		{"ISO_8859_1", "\xa4", "¤"},
		{"iso-8859-15", "\xa4", "€"},
		{"iso8859-15", "\xa4", "€"},
		{"cp1252", "\x80\x81\x9d", "€\ufffd\ufffd"},
		{"windows-1251", "\xcf\xf0", "Пр"},
		{"cp437", "\x82\xff", "é\u00a0"},
		{"koi8-r", "\xf0", "П"},
		{"mac_roman", "\x8e", "é"},
		{"ascii", "a\xe9b", "a\ufffdb"},
		{"utf8", "a\xe9b", "a\ufffdb"},
		{"UTF-8", "é", "é"},
	} {
		decode, ok := Decoder(tt.name)
		require.True(t, ok, tt.name)
		require.Equal(t, tt.want, decode(tt.in), tt.name)
	}
	for _, name := range []string{"utf-16", "shift_jis", "gbk", "idna", "nosuch"} {
		_, ok := Decoder(name)
		require.False(t, ok, name)
	}
}
