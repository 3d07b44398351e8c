//go:build fleet

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// process is a program of a crash test, which begins and is killed again and again.
type process struct {
	cmd   *exec.Cmd // nil while it does not run
	ended chan struct{}
}

// begin starts a command in a session of its own, with a log at the end of which its output goes.
func (p *process) begin(cmd *exec.Cmd, log string) error {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

// kill ends it with SIGKILL; steps that it runs live on.
func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.cmd = nil
	}
}

// crashedProject writes, into the new repositories code and pillar below dir, a project of n nodes in two stages, and commits the pillar. Its steps note in files of each node what begins, by deployment, and whether
// two ran at a time.
func crashedProject(t *testing.T, dir string, n int, write func(name, text string), git func(repo string, args ...string)) {
	t.Helper()
	for _, repo := range []string{"code", "pillar"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, repo), 0o755))
		git(repo, "init", "-q")
	}
	half := n / 2
	write("pillar/nodes.yaml", fmt.Sprintf("nodes:\n  \"n[0-%d]\": {roles: [a]}\n  \"n[%d-%d]\": {roles: [b]}\n", half-1, half, n-1))
	write("pillar/init.sls", "makina-projects.app: {data: {}}\n")
	write("code/.salt/stages.yaml", "on_failure: all\nstages:\n- {name: first, roles: [a], canary: 1}\n- {name: second, roles: [b], rolling: 50%}\n")
	write("code/.salt/hooks/pre-deploy.d/10_note", "#!/bin/sh\necho \"$CORPUS_DEPLOYMENT $CORPUS_TRIGGER\" >> \"$CORPUS_DATA_ROOT/../../../began\"\n")
	require.NoError(t, os.Chmod(filepath.Join(dir, "code/.salt/hooks/pre-deploy.d/10_note"), 0o755))
	write("code/.salt/010_work.sls", `{% set cfg = opts.ms_project %}
work:
  cmd.run:
    - name: 'exec 9>> {{cfg.data_root}}/../../../lock; flock -n 9 || echo two at a time >> {{cfg.data_root}}/../../../wrong; i=0; while [ $i -lt 8 ]; do cp version made.$i; sleep 0.02; i=$((i+1)); done; ! grep -qx "{{cfg.data.node.name}}" breaks'
    - cwd: {{cfg.project_root}}
`)
	write("code/.gitignore", "/made.*\n")
	git("pillar", "add", "-A")
	git("pillar", "commit", "-qm", "Pillar")
}
