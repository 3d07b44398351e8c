package state

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addGit adds git.latest, and makina-states' mc_git.latest as the same, through the git of the machine.
func addGit(t *Table) {
	t.add("git.latest", "target! rev branch user runas update_head force_checkout force_clone force_fetch force_reset force submodules bare "+
		"mirror remote remote_name always_fetch? fetch_tags sync_tags depth identity https_user https_pass refspec_branch refspec_tag "+
		"use_vt password? output_encoding", gitLatest)
	t.add("git.cloned", "target! branch user identity https_user https_pass password? output_encoding", gitCloned)
	t.add("git.present", "force bare template separate_git_dir shared user password? output_encoding", gitPresent)
	t.same("mc_git", "git")
}

// git runs git as the user of the state.
func (c *Call) git(dir string, args ...string) (string, error) { return c.gitRun(dir, false, args) }

// gitMerged is git with standard error in its output.
func (c *Call) gitMerged(dir string, args ...string) (string, error) {
	return c.gitRun(dir, true, args)
}

func (c *Call) gitRun(dir string, merge bool, args []string) (string, error) {
	env := map[string]string{"GIT_TERMINAL_PROMPT": "0", "LANGUAGE": "C"}
	if id := c.strs("identity"); len(id) > 0 {
		var b strings.Builder
		b.WriteString("ssh -o BatchMode=yes -o IdentitiesOnly=yes")
		for _, i := range id {
			b.WriteString(" -i '" + strings.ReplaceAll(i, "'", `'\''`) + "'")
		}
		env["GIT_SSH_COMMAND"] = b.String()
	}
	login, err := c.gitLogin()
	if err != nil {
		return "", err
	}
	maps.Copy(env, login)
	user := c.str("user", c.str("runas", c.RunAs))
	out, err := c.toolAs(host.Shell{Argv: append([]string{"git"}, args...), Dir: dir, RunAs: user, Env: env, Merge: merge})
	if enc := c.str("output_encoding", ""); enc != "" {
		out = decodeText(out, enc)
		var failed *toolError
		if errors.As(err, &failed) {
			failed.msg = decodeText(failed.msg, enc)
		}
	}
	return out, err
}

func (c *Call) gitQuiet(dir string, args ...string) (string, error) {
	q := *c
	q.Output = nil
	return q.git(dir, args...)
}

func (c *Call) gitReady(target string) string {
	switch {
	case !c.installed("git"):
		return "git is not installed on this machine"
	case target == "":
		return "'target' option is required"
	case !filepath.IsAbs(target):
		return "target '" + target + "' is not an absolute path"
	}
	return ""
}

// gitLatest implements git.latest. Source: Salt documentation, git state, latest; salt/states/git.py.
func gitLatest(c *Call) Return {
	target := strings.TrimSuffix(c.expand(c.str("target", "")), "/")
	if target == "" && !strings.Contains(c.Name, "://") && c.Function != "git.latest" {
		target = c.Name
	}
	if fail := c.gitReady(target); fail != "" {
		return Failf("%s", fail)
	}
	w := c.gitWork(target)
	if v, ok := c.val("force_reset"); ok {
		if s, text := v.(string); text && s != "remote-changes" {
			return Failf("'force_reset' must be one of True, False, or 'remote-changes'")
		}
	}
	if _, err := c.gitLogin(); err != nil {
		return Failf("%s", err)
	}
	if w.bare && w.rev != "HEAD" {
		return Failf("'rev' is not compatible with the 'mirror' and 'bare' arguments")
	}
	switch there := isRepo(target, w.bare); {
	case there && w.bare:
		return w.bareUpdate()
	case there:
		return w.update()
	}
	return w.clone()
}

// gitCloned implements git.cloned. Source: Salt documentation, git state, cloned.
func gitCloned(c *Call) Return {
	target := strings.TrimSuffix(c.expand(c.str("target", "")), "/")
	if fail := c.gitReady(target); fail != "" {
		return Failf("%s", fail)
	}
	w := c.gitWork(target)
	with := ""
	if c.has("branch") {
		if w.branch == "" {
			return Failf("Invalid 'branch' argument")
		}
		with = " with branch '" + w.branch + "'"
	}
	if exists(target) {
		if _, err := c.gitQuiet(target, "status", "-z", "--porcelain"); err != nil {
			return Failf("%s", gitSays(err))
		}
		return w.branchOf()
	}
	w.ret.Set("new", c.gitURL()+" => "+target)
	if c.Test {
		return w.would(c.gitURL() + " would be cloned to " + target + with)
	}
	if _, err := c.gitLogin(); err != nil {
		return Failf("%s", err)
	}
	if fail := c.gitPlace(target); fail != "" {
		return Failf("%s", fail)
	}
	defer func() { _ = os.Remove(target) }() // an empty one, where the clone failed
	args := []string{"clone"}
	if w.branch != "" {
		args = append(args, "--branch", w.branch)
	}
	if _, err := c.git("/", append(args, "--", c.Name, target)...); err != nil {
		return Failf("Clone failed: %s", gitSays(err))
	}
	w.ret.Comment = c.gitURL() + " cloned to " + target + with
	return w.ret
}

// branchOf is git.cloned where there is a repository.
func (w *gitWork) branchOf() Return {
	_, now := w.head()
	switch {
	case w.branch == "":
		return OKf("Repository already exists at %s", w.target)
	case now == w.branch:
		return OKf("Repository already exists at %s and is checked out to branch '%s'", w.target, w.branch)
	}
	w.ret.Set("branch", py.NewDict("old", now, "new", w.branch))
	if w.c.Test {
		return w.would("Branch would be changed to '" + w.branch + "'")
	}
	args := []string{"checkout", w.branch}
	if _, ok := w.ask("rev-parse", "--verify", "--quiet", w.branch); !ok {
		args = []string{"checkout", "-b", w.branch, "origin/" + w.branch}
	}
	if err := w.git(args...); err != nil {
		return Failf("Failed to change branch to '%s': %s", w.branch, gitSays(err))
	}
	w.ret.Comment = "Branch changed to '" + w.branch + "'"
	return w.ret
}

// gitPresent implements git.present. Source: Salt documentation, git state, present.
func gitPresent(c *Call) Return {
	name := strings.TrimSuffix(c.expand(c.Name), "/")
	bare := c.boolean("bare", true)
	switch {
	case !c.installed("git"):
		return Failf("git is not installed on this machine")
	case !filepath.IsAbs(name):
		return Failf("Path '%s' is not absolute", name)
	case bare && isFile(filepath.Join(name, "HEAD")), !bare && lexists(filepath.Join(name, ".git")):
		return OKf("")
	}
	kind := "" // as Salt names it
	if bare {
		kind = "bare "
	}
	ret := Return{Result: True}
	if entries, err := os.ReadDir(name); err == nil {
		switch {
		case c.boolean("force", false) && c.Test:
			ret.Set("new", name)
			ret.Set("forced init", true)
			ret.Result = None
			ret.Comment = "Target directory " + name + " exists. Since force=True, the contents of " + name + " would be deleted, and a " + kind + "repository would be initialized in its place."
			return ret
		case c.boolean("force", false):
			if err := os.RemoveAll(name); err != nil {
				return Failf("Unable to remove %s: %s", name, err)
			}
			ret.Set("forced init", true)
		case len(entries) > 0:
			return Failf("Target '%s' exists, is non-empty, and is not a git repository. Set the 'force' option to True to remove this directory's contents and proceed with initializing a repository", name)
		}
	}
	ret.Set("new", name)
	if c.Test {
		ret.Result, ret.Comment = None, "New "+kind+"repository would be created"
		return ret
	}
	if fail := c.gitPlace(name); fail != "" {
		return Failf("%s", fail)
	}
	args := []string{"init", "--quiet"}
	if bare {
		args = append(args, "--bare")
	}
	actions := []string{"Initialized " + kind + "repository in " + name}
	if t := c.str("template", ""); t != "" {
		args = append(args, "--template="+t)
		actions = append(actions, "Template directory set to "+t)
	}
	if d := c.str("separate_git_dir", ""); d != "" {
		args = append(args, "--separate-git-dir="+d)
		actions = append(actions, "Gitdir set to "+d)
	}
	if v, ok := c.val("shared"); ok {
		if n, isInt := v.(int64); isInt {
			args = append(args, fmt.Sprintf("--shared=0%d", n))
		} else {
			args = append(args, "--shared="+strings.ToLower(py.Str(v)))
		}
	}
	if _, err := c.git("/", append(args, "--", name)...); err != nil {
		return Failf("%s", gitSays(err))
	}
	ret.Comment = joinComments(actions)
	return ret
}
