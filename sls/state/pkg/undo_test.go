package pkg

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A machine with packages in a file, which apt-get changes as it is told; it knows no version but those in known.
func aptMachine(t *testing.T, installed, known string) (run func(script, stdin string) (string, error), list string) {
	dir := t.TempDir()
	list = filepath.Join(dir, "installed")
	for name, text := range map[string]string{
		"installed": installed, "known": known,
		"bin/dpkg-query": "#!/bin/sh\nsed 's/^/installed /' " + list + "; echo 'config-files gone=1'\n",
		"bin/apt-get": `#!/bin/sh
cd ` + dir + `
seen=
for a; do
	case $seen$a in
	install) seen=install; continue;;
	install*-) n=${a%-}; grep -v "^$n=" installed > x; mv x installed;;
	install*=*) grep -qx "$a" known || { echo Reading...; echo "E: Version '${a#*=}' for '${a%%=*}' was not found"; exit 100; }
		grep -v "^${a%%=*}=" installed > x; echo "$a" >> x; mv x installed;;
	esac
done
`,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	}
	return func(script, stdin string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Env, cmd.Stdin = []string{"PATH=" + dir + "/bin:/usr/bin:/bin"}, strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}, list
}

func TestRestorePackages(t *testing.T) {
	const before = "bash=5.2\nlibc6:amd64=2.36-9\nnginx=1.22\nold=1:1.0~rc1-2+b1\n"
	run, list := aptMachine(t, before, before)
	have, err := run(listPackages, "")
	require.NoError(t, err, have)
	require.Equal(t, before, have)
	seen, err := run(seePackages, "")
	require.NoError(t, err)

	// One came with what it needs, one went, one was replaced.
	require.NoError(t, os.WriteFile(list, []byte("bash=5.2\nlibc6:amd64=2.36-9\nlibnew:amd64=3\nnew=2\nnginx=1.26\n"), 0o600))
	now, err := run(seePackages, "")
	require.NoError(t, err)
	require.NotEqual(t, seen, now)
	out, err := run(restorePackages, have)
	require.NoError(t, err, out)
	now, err = run(seePackages, "")
	require.NoError(t, err)
	require.Equal(t, seen, now)
	out, err = run(restorePackages, have)
	require.NoError(t, err, "a second time there is nothing to do")
	require.Empty(t, out)

	// A version that apt does not have any more: it says which.
	run, list = aptMachine(t, before, "")
	require.NoError(t, os.WriteFile(list, []byte("bash=5.2\nlibc6:amd64=2.36-9\nnginx=1.26\nold=1:1.0~rc1-2+b1\n"), 0o600))
	out, err = run(restorePackages, have)
	require.Error(t, err)
	require.Equal(t, "E: Version '1.22' for 'nginx' was not found\n", out)
}
