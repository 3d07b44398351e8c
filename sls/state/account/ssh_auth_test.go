package account

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

func TestSSHAuth(t *testing.T) {
	home := t.TempDir()
	passwd := filepath.Join(t.TempDir(), "passwd")
	uid := os.Geteuid()
	require.NoError(t, os.WriteFile(passwd, fmt.Appendf(nil, "ann:x:%d:%d::%s:/bin/sh\n", uid, os.Getegid(), home), 0o600))
	run := func(fun, key string, args ...any) core.Return {
		f, _ := core.NewTable(States).Lookup(fun)
		h := host.New(execx.OS{})
		h.Users = host.FileUsers{Passwd: passwd}
		c := &core.Call{Env: &core.Env{Host: h, Cache: map[string]any{}}, Ctx: context.Background(), Name: key, Args: py.NewDict(append(args, "user", "ann")...)}
		return f.Run(c)
	}
	file := filepath.Join(home, ".ssh/authorized_keys")
	read := func() string {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(b)
	}
	r := run("ssh_auth.present", "AAAAkey1", "enc", "ed25519", "comment", "one")
	require.Equal(t, core.True, r.Result, r.Comment)
	require.True(t, r.Changed())
	require.False(t, run("ssh_auth.present", "AAAAkey1", "enc", "ed25519", "comment", "one").Changed())
	require.True(t, run("ssh_auth.present", `command="a b" ssh-rsa AAAAkey2 two words`).Changed())
	require.Equal(t, "ssh-ed25519 AAAAkey1 one\ncommand=\"a b\" ssh-rsa AAAAkey2 two words\n", read())
	st, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode())
	require.True(t, run("ssh_auth.absent", "AAAAkey1").Changed())
	require.False(t, run("ssh_auth.absent", "AAAAkey1").Changed())
	require.Equal(t, "command=\"a b\" ssh-rsa AAAAkey2 two words\n", read())
}
