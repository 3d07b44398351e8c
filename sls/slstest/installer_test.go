package slstest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// installer runs a script of .ci with an empty cache and a registry that nobody serves.
func installer(t *testing.T, script string, env ...string) (output string, status int) {
	cmd := exec.Command(filepath.Join("..", "..", ".ci", script))
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PIP_") && !strings.HasPrefix(kv, "CI=") && !strings.HasPrefix(kv, "PYTHON=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+t.TempDir(), "PIP_INDEX_URL=http://127.0.0.1:9/simple", "PIP_CONFIG_FILE=/dev/null",
		"PIP_NO_CACHE_DIR=1", "PIP_RETRIES=0")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// Without the registry .ci/salt says so, and ends with 75, which is no other failure.
func TestInstallerWithoutRegistry(t *testing.T) {
	if _, named := os.LookupEnv("SALT_CALL"); !named {
		t.Skip("it makes a virtual environment, which takes a while: make salt runs it")
	}
	const needs = "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))"
	if err := exec.Command("python3", "-c", needs).Run(); err != nil {
		t.Skip("there is no Python 3.11 that can make virtual environments")
	}
	out, status := installer(t, "salt")
	require.Equal(t, 75, status, out)
	require.Contains(t, out, "the Python registry can't be reached")
}

// aPython stands in for one: it makes environments whose pip does what FAKE_PIP says.
const aPython = `#!/bin/sh
case "$*" in
*"-m venv "*)
	for d in "$@"; do dir=$d; done
	mkdir -p "$dir/bin"
	printf '#!/bin/sh\ncase "$1" in download) %s ;; *) exit 1 ;; esac\n' "$FAKE_PIP" > "$dir/bin/pip"
	chmod 755 "$dir/bin/pip" ;;
*sys.version,*) echo fake ;;
esac
`

// Whether a registry that can't be reached is a failure depends on CI alone; that the pins can't be installed is one
// everywhere.
func TestSaltSuiteWithoutSalt(t *testing.T) {
	python := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(python, []byte(aPython), 0o755))
	for _, tt := range []struct {
		about, pip, ci string
		status         int
		says           string
	}{
		{"no registry", "exit 1", "", 0, "skipped: Salt is not installed, and the Python registry can't be reached"},
		{"no registry in CI", "exit 1", "true", 1, "can't be held against the real Salt"},
		{"pins that are gone", "exit 0", "", 1, "the pins of .ci/salt.txt can't be installed"},
		{"pins that are gone in CI", "exit 0", "true", 1, "the pins of .ci/salt.txt can't be installed"},
	} {
		out, status := installer(t, "saltsuite", "PYTHON="+python, "FAKE_PIP="+tt.pip, "CI="+tt.ci)
		require.Equal(t, tt.status, status, "%s: %s", tt.about, out)
		require.Contains(t, out, tt.says, tt.about)
	}
}
