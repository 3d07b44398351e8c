package salt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInterpreters(t *testing.T) {
	dir := t.TempDir()
	program := func(name, text string) string {
		p := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(text), 0o755))
		return p
	}
	venv := program("venv/bin/python3", "")
	system := program("usr/bin/python3.11", "")
	onedir := program("salt/bin/python3", "")
	onedirMinor := program("salt/bin/python3.10", "")
	program("salt/bin/python3.10-config", "")
	for name, c := range map[string]struct {
		at, text string
		want     [][]string
	}{
		"venv":         {"venv/bin/salt-call", "#!" + venv + "\nimport re\n", [][]string{{venv}}},
		"distribution": {"other/salt-call", "#!" + system + " -s\n", [][]string{{system, "-s"}}},
		"env":          {"other/salt-call", "#!/usr/bin/env python3.11\n", [][]string{{system}}},
		"env -S":       {"other/salt-call", "#!/usr/bin/env -S python3.11 -E\n", [][]string{{system, "-E"}}},
		"long path":    {"other/salt-call", "#!/bin/sh\n'''exec' " + venv + " \"$0\" \"$@\"\n' '''\n", [][]string{{venv}}},
		"quoted path":  {"other/salt-call", "#!/bin/sh\n'''exec' \"" + venv + "\" \"$0\" \"$@\"\n' '''\n", [][]string{{venv}}},
		"onedir":       {"salt/salt-call", "#!/bin/sh\n\"exec\" \"$(dirname \"$(readlink -f \"$0\")\")/bin/python3\" \"$0\" \"$@\"\n", [][]string{{onedir}, {onedirMinor}}},
		"not python":   {"other/salt-call", "#!/usr/bin/perl\n", nil},
		"binary":       {"other/salt-call", "\x7fELF\x00\x00", nil},
		"no such":      {"other/salt-call", "#!/nowhere/python3\n", nil},
		"empty":        {"other/salt-call", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			bin := program(c.at, c.text)
			require.Equal(t, c.want, interpreters(bin, []string{"PATH=/nowhere", "PATH=relative:" + filepath.Dir(system)}))
		})
	}
	t.Run("link", func(t *testing.T) {
		program("salt/salt-call", "#!/bin/sh\n")
		link := filepath.Join(dir, "bin", "salt-call")
		require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o755))
		require.NoError(t, os.Symlink("../salt/salt-call", link))
		require.Equal(t, [][]string{{onedir}, {onedirMinor}}, interpreters(link, nil))
	})
	require.Nil(t, interpreters("/nowhere/salt-call", nil))
}
