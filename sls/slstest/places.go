package slstest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/sls"
	"corpus-git/sls/host"
	"corpus-git/sls/run"
)

// Salt looks for apt's sources in /etc/apt, for accounts in /etc/passwd, and nowhere else. Trees about them contain their
// own directory or files: Salt runs in a mount namespace, which needs root. The built-in runner is configured with another
// path.

// ownPlaces returns the options of a tree that provide such directories or files.
func ownPlaces(opts map[string]string) (out []string) {
	for _, dir := range []string{"apt", "etc"} {
		if opts[dir] == "true" {
			out = append(out, dir)
		}
	}
	return out
}

// ownPlace returns the place for such a tree: a real Salt is started anew, since a running one sees the machine's own
// files.
func ownPlace(t *testing.T, o Options, p place) place {
	if _, ok := p.runner.(*run.Builtin); ok {
		return p
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give Salt files in /etc of its own")
	}
	if _, err := os.Stat("/etc/apt"); err != nil {
		t.Skip("Salt manages repositories where apt is installed")
	}
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		t.Skipf("mounts of its own are refused here: %s", out)
	}
	p.runner = o.New(t, filepath.Join(t.TempDir(), runnerDir))
	return p
}

// own gives a runner the directory with that name in base, and returns the path under which the runner sees it.
func own(t *testing.T, h *host.Host, r sls.Runner, base, name string) string {
	dir := filepath.Join(base, name)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	_, builtin := r.(*run.Builtin)
	switch {
	case name == "apt":
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "sources.list.d"), 0o755))
		if builtin {
			h.AptDir = dir
			return dir
		}
		h.Exec = inNamespace{h.Exec, dir, `mount --bind "$0" /etc/apt`}
		return "/etc/apt"
	case builtin:
		h.EtcDir, h.Users = dir, host.FileUsers{Passwd: filepath.Join(dir, "passwd"), GroupF: filepath.Join(dir, "group")}
		return dir
	}
	h.Exec = inNamespace{h.Exec, dir, `for f in "$0"/*; do mount --bind "$f" "/etc/${f##*/}" || exit 1; done`}
	return "/etc"
}

// inNamespace runs commands with files that replace those of /etc.
type inNamespace struct {
	execx.Commander
	dir, mounts string
}

func (n inNamespace) Run(ctx context.Context, c execx.Cmd) (execx.Status, error) {
	c.Argv = append([]string{"unshare", "-m", "sh", "-c", n.mounts + ` && exec "$@"`, n.dir}, c.Argv...)
	return n.Commander.Run(ctx, c)
}
