package cron

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

func TestCron(t *testing.T) {
	dir := t.TempDir()
	tab := filepath.Join(dir, "tab")
	script := "#!/bin/sh\ncase \" $* \" in *\" -l \"*) cat " + tab + " 2>/dev/null || { echo no crontab >&2; exit 1; } ;; *) cat > " + tab + " ;; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "crontab"), []byte(script), 0o755))
	run := func(fun, name string, args ...any) core.Return {
		f, _ := core.NewTable(States).Lookup(fun)
		h := host.New(execx.OS{})
		h.Environ = []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=/"}
		c := &core.Call{Env: &core.Env{Host: h, Cache: map[string]any{}}, Ctx: context.Background(), Name: name, Args: py.NewDict(args...)}
		return f.Run(c)
	}
	read := func() string {
		b, err := os.ReadFile(tab)
		require.NoError(t, err)
		return string(b)
	}
	r := run("cron.present", "/bin/a b", "minute", int64(5), "comment", "why", "identifier", "A")
	require.Equal(t, core.True, r.Result, r.Comment)
	require.Equal(t, cronHead+"\n# why SALT_CRON_IDENTIFIER:A\n5 * * * * /bin/a b\n", read())
	require.False(t, run("cron.present", "/bin/a b", "minute", int64(5), "comment", "why", "identifier", "A").Changed())
	require.True(t, run("cron.present", "/bin/new", "identifier", "A", "special", "@daily").Changed())
	require.Equal(t, cronHead+"\n# why SALT_CRON_IDENTIFIER:A\n@daily /bin/new\n", read())
	require.True(t, run("cron.present", "/bin/c").Changed())
	require.False(t, run("cron.absent", "/bin/x", "identifier", "A").Changed()) // Salt looks among those with a time
	require.True(t, run("cron.absent", "/bin/x", "identifier", "A", "special", "@daily").Changed())
	require.Equal(t, cronHead+"\n# SALT_CRON_IDENTIFIER:/bin/c\n* * * * * /bin/c\n", read())
	require.False(t, run("cron.absent", "/bin/zz").Changed())
}
