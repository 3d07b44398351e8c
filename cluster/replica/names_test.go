package replica_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"corpus-git/cluster/replica"
)

func TestEscape(t *testing.T) {
	for name, want := range map[string]string{
		"refs/heads/master": "refs/heads/master", "refs/tags/größe": "refs/tags/größe", "a%b": "a%25b", "%41": "%2541", "\xff\xfe": "%FF%FE", "ü\xc3": "ü%C3", "": "",
	} {
		got := replica.Escape(name)
		require.Equal(t, want, got)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, name, replica.Unescape(got))
	}
	require.Equal(t, "%", replica.Unescape("%"), "from an earlier release")
	require.Equal(t, "%zz", replica.Unescape("%zz"))
}
