package tool

import (
	"context"
	_ "embed" // the callback
	"fmt"
	"os"
	"path/filepath"

	"corpus-git/sls"
)

//go:embed events.py
var callback string

// Ansible is the runner of playbooks: ansible-playbook with the connection local and the one host localhost. cfg is the variable cfg.
//
// Source: Ansible documentation, ansible-playbook(1) and "Ansible Configuration Settings".
type Ansible struct{}

var _ sls.Runner = Ansible{}

// Name implements Runner.
func (Ansible) Name() string { return "ansible" }

// Check implements Runner: ansible-playbook --syntax-check.
func (a Ansible) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	if err := find(in, "ansible-playbook", "on Debian: apt-get install ansible-core"); err != nil {
		return nil, err
	}
	there, err := exists(in)
	if err != nil {
		return nil, err
	}
	if there {
		w, end, err := begin(in)
		if err != nil {
			return nil, err
		}
		defer end()
		env, args, err := a.prepare(w)
		if err != nil {
			return nil, err
		}
		if err := w.check(ctx, env, append(args, "--syntax-check", in.Script)...); err != nil {
			return nil, err
		}
	}
	return &sls.Checked{SLS: in.SLS, File: shown(in), Runner: a.Name()}, nil
}

// prepare returns the environment and the command line without the playbook. ansible.cfg is the recipe's own or the machine's: one in
// the working folder is never read.
func (a Ansible) prepare(w *work) (env, args []string, err error) {
	vars, err := w.cfg("cfg")
	if err != nil {
		return nil, nil, err
	}
	file, err := w.file("vars.json", vars)
	if err != nil {
		return nil, nil, err
	}
	plugin, err := w.file("callback/corpus_events.py", callback)
	if err != nil {
		return nil, nil, err
	}
	config := filepath.Join(filepath.Dir(w.in.Script), "ansible.cfg")
	if fi, err := os.Lstat(config); err != nil || !fi.Mode().IsRegular() {
		config = "/etc/ansible/ansible.cfg"
	}
	env = []string{
		"ANSIBLE_CONFIG=" + config, "ANSIBLE_CALLBACK_PLUGINS=" + filepath.Dir(plugin), "ANSIBLE_STDOUT_CALLBACK=corpus_events",
		"ANSIBLE_LOCAL_TEMP=" + filepath.Join(w.dir, "tmp"), "ANSIBLE_NOCOLOR=1", "ANSIBLE_FORCE_COLOR=0", "ANSIBLE_RETRY_FILES_ENABLED=0",
		"ANSIBLE_LOCALHOST_WARNING=0", "ANSIBLE_INVENTORY_UNPARSED_WARNING=0", "ANSIBLE_HOST_KEY_CHECKING=1",
		"PYTHONDONTWRITEBYTECODE=1",
	}
	return env, []string{"ansible-playbook", "-i", "localhost,", "-c", "local", "--extra-vars", "@" + file, "--extra-vars", "ansible_python_interpreter=auto_silent"}, nil
}

// Apply implements Runner. A test run is --check --diff.
func (a Ansible) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	if err := manual(in, "playbook"); err != nil {
		return nil, err
	}
	w, end, err := begin(in)
	if err != nil {
		return nil, err
	}
	defer end()
	env, args, err := a.prepare(w)
	if err != nil {
		return nil, err
	}
	args = append(args, "--diff")
	if in.Test {
		args = append(args, "--check")
	}
	s := newStates(in, sink, a.Name())
	exit, tail, err := w.run(ctx, append(args, in.Script), env, "", s.line)
	if err != nil {
		return s.res, err
	}
	return s.end(exit != 0, fmt.Sprintf("ansible-playbook ended with exit status %d\n%s", exit, tail)), nil
}
