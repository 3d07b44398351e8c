package slstest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"corpus-git/internal/execx"
	"corpus-git/sls"
	"corpus-git/sls/host"
)

// Salt looks for apt's sources in /etc/apt and nowhere else. Trees about them give it a directory of their own there:
// it runs in a mount namespace, which needs root. The built-in runner is told another directory.

// aptPlace is the place for such a tree: a real Salt is started anew, as one that runs sees the machine's own directory.
func aptPlace(t *testing.T, o Options, p place) place {
	if _, ok := p.runner.(*sls.Builtin); ok {
		return p
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give Salt a directory for apt of its own")
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

// ownApt gives a runner the directory dir, and tells by which path it sees it.
func ownApt(h *host.Host, r sls.Runner, dir string) string {
	if _, ok := r.(*sls.Builtin); ok {
		h.AptDir = dir
		return dir
	}
	h.Exec = inNamespace{h.Exec, dir}
	return "/etc/apt"
}

// inNamespace runs commands where a directory stands in for /etc/apt.
type inNamespace struct {
	execx.Commander
	dir string
}

func (n inNamespace) Run(ctx context.Context, c execx.Cmd) (execx.Status, error) {
	c.Argv = append([]string{"unshare", "-m", "sh", "-c", `mount --bind "$0" /etc/apt && exec "$@"`, n.dir}, c.Argv...)
	return n.Commander.Run(ctx, c)
}
