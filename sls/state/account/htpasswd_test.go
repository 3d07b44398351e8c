package account

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

// The expected hashes are those of openssl passwd.
func TestApr1(t *testing.T) {
	require.Equal(t, "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/", apr1("secret", "abcdefgh"))
	require.Equal(t, "$apr1$12345678$iHG6z5QyvBj5X7XsjhPcb/", apr1("a much longer password than sixteen", "12345678"))
}

func TestHtpasswd(t *testing.T) {
	f := filepath.Join(t.TempDir(), "htpasswd")
	args := []any{"htpasswd_file", f, "password", "a secret", "options", "m"}
	require.Equal(t, core.None, statetest.Do(t, States, true, "webutil.user_exists", "ann", args...).Result)
	require.NoFileExists(t, f)
	r := statetest.Do(t, States, false, "webutil.user_exists", "ann", args...)
	require.Equal(t, core.True, r.Result, r.Comment)
	require.True(t, r.Changed())
	r = statetest.Do(t, States, false, "webutil.user_exists", "ann", args...)
	require.False(t, r.Changed())
	r = statetest.Do(t, States, false, "webutil.user_exists", "ann", append(args, "force", true)...)
	require.True(t, r.Changed())
	r = statetest.Do(t, States, false, "webutil.user_exists", "bob", "htpasswd_file", f, "password", "x", "options", "B")
	require.True(t, r.Changed())
	r = statetest.Do(t, States, false, "webutil.user_exists", "bob", "htpasswd_file", f, "password", "x", "update", true)
	require.False(t, r.Changed())
	r = statetest.Do(t, States, false, "webutil.user_exists", "bob", "htpasswd_file", f, "password", "y", "update", true)
	require.True(t, r.Changed())
	b, err := os.ReadFile(f)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(b), "\n"))
	require.NotContains(t, string(b), "a secret")
	require.True(t, statetest.Do(t, States, false, "webutil.user_absent", "ann", "htpasswd_file", f).Changed())
	require.False(t, statetest.Do(t, States, false, "webutil.user_absent", "ann", "htpasswd_file", f).Changed())
}
