package event

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHintsNameCommandsThatTheReaderCanRun(t *testing.T) {
	const ssh = "ssh -p 2222 deploy@server"
	for _, c := range []struct{ hint, prefix, want string }{
		{"full log:  corpus-git logs app 0198c2f4", "", "full log:  corpus-git logs app 0198c2f4"},
		{"full log:  corpus-git logs app 0198c2f4", ssh, "full log:  ssh -p 2222 deploy@server logs app 0198c2f4"},
		{"see corpus-git logs app ; then  corpus-git deploy app", ssh, "see ssh -p 2222 deploy@server logs app ; then  ssh -p 2222 deploy@server deploy app"},
		{"start it:  corpus-git serve", ssh, "start it:  corpus-git serve"},
		{"a newer corpus-git wrote it: use that one", ssh, "a newer corpus-git wrote it: use that one"},
	} {
		require.Equal(t, c.want, WithCommands(c.hint, c.prefix))
	}
	c := NewConsole(nil, Style{Commands: ssh})
	require.Equal(t, []string{indent + "hint: ssh -p 2222 deploy@server logs app"}, c.lines(Event{Kind: Hint, Text: "corpus-git logs app"}))
}
