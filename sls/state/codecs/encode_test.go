package codecs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is expected is what str.encode of Python 3.11 gives.
func TestEncodeText(t *testing.T) {
	for _, tt := range []struct{ text, encoding, errors, want, fails string }{
		{"aé", "UTF-8", "strict", "aé", ""},
		{"aé", "utf_8_sig", "", "\xef\xbb\xbfaé", ""},
		{"é€", "latin-1", "strict", "", `'latin-1' codec can't encode character '\u20ac' in position 1: ordinal not in range(256)`},
		{"aé€b", "ascii", "strict", "", "'ascii' codec can't encode characters in position 1-2: ordinal not in range(128)"},
		{"aé€b", "ascii", "surrogateescape", "", "'ascii' codec can't encode characters in position 1-2: ordinal not in range(128)"},
		{"aé€b", "646", "ignore", "ab", ""},
		{"aé€b", "us-ascii", "replace", "a??b", ""},
		{"aé😀b", "ascii", "xmlcharrefreplace", "a&#233;&#128512;b", ""},
		{"aé€😀b", "ascii", "backslashreplace", `a\xe9\u20ac\U0001f600b`, ""},
		{"aé", "ascii", "other", "", "unknown error handler name 'other'"},
		{"a", "ascii", "other", "a", ""},
		{"a", "none", "strict", "", "unknown encoding: none"},
		{"é€", "cp1252", "strict", "\xe9\x80", ""},
		{"\u0081", "cp1252", "strict", "", `'charmap' codec can't encode character '\x81' in position 0: character maps to <undefined>`},
		{"\u0081€", "ISO-8859-15", "strict", "\x81\xa4", ""},
		{"ж", "koi8-r", "strict", "\xd6", ""},
		{"ж", "cyrillic", "strict", "\xd6", ""},
		{"é", "ibm850", "strict", "\x82", ""},
		{"é", "437", "strict", "\x82", ""},
		{"é", "mac-roman", "strict", "\x8e", ""},
		{"a€😀", "utf-16-le", "strict", "a\x00\xac\x20\x3d\xd8\x00\xde", ""},
		{"a", "UTF-16", "strict", "\xff\xfea\x00", ""},
		{"€", "utf16be", "", "", "unknown encoding: utf16be"},
		{"€", "utf-16BE", "", "\x20\xac", ""},
		{"😀", "utf-32-be", "", "\x00\x01\xf6\x00", ""},
		{"a", "utf-32", "", "\xff\xfe\x00\x00a\x00\x00\x00", ""},
	} {
		got, err := Encode(tt.text, tt.encoding, tt.errors)
		if tt.fails != "" {
			require.EqualError(t, err, tt.fails)
			continue
		}
		require.NoError(t, err, tt.encoding)
		require.Equal(t, tt.want, string(got), tt.encoding)
	}
	for _, n := range []string{"cp1255", "koi8-u", "gbk", "ibm1252", "windows-437", "", "iso8859_12"} {
		require.Nil(t, Lookup(n), "%s is Salt's alone", n)
	}
}
