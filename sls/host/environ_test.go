package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The server's own variables may hold secrets: but for three, none reaches what runs for a project.
func TestCleanEnvironPassesNoSecretOn(t *testing.T) {
	server := []string{"DATABASE_PASSWORD=s3cr3t", "PATH=/opt/evil", "HOME=relative", "HOME=/srv", "TZ=Europe/Paris", "TMPDIR=/var/tmp", "LD_PRELOAD=/x.so", "USER=other"}
	require.Equal(t, []string{"PATH=" + Path, "HOME=/srv", "USER=ann", "LOGNAME=ann", "SHELL=/bin/sh", "LANG=C.UTF-8", "TZ=Europe/Paris", "TMPDIR=/var/tmp"},
		CleanEnviron(server, accounts(t), 1000))
	require.Equal(t, []string{"PATH=" + Path, "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/sh", "LANG=C.UTF-8"},
		CleanEnviron([]string{"HOME=relative"}, accounts(t), 0), "the home of the account stands in for one that is not a path")
	require.Equal(t, []string{"PATH=" + Path, "HOME=/", "USER=4711", "LOGNAME=4711", "SHELL=/bin/sh", "LANG=C.UTF-8"},
		CleanEnviron(nil, accounts(t), 4711), "an account without an entry has / as its home")
}
