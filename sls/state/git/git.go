package git

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/codecs"
	"corpus-git/sls/state/core"
)

// States adds git.latest, and makina-states' mc_git.latest as the same, through the git of the machine.
func States(t *core.Table) {
	t.Add("git.latest", "target! rev branch user runas update_head force_checkout force_clone force_fetch force_reset force submodules bare "+
		"mirror remote remote_name always_fetch? fetch_tags sync_tags depth identity https_user https_pass refspec_branch refspec_tag "+
		"use_vt password? output_encoding", gitLatest)
	t.Add("git.cloned", "target! branch user identity https_user https_pass password? output_encoding", gitCloned)
	t.Add("git.present", "force bare template separate_git_dir shared user password? output_encoding", gitPresent)
	t.Alias("mc_git", "git")
}

// git runs git as the user of the state.
func git(c *core.Call, dir string, args ...string) (string, error) {
	return gitRun(c, dir, false, args)
}

// gitMerged is git with standard error in its output.
func gitMerged(c *core.Call, dir string, args ...string) (string, error) {
	return gitRun(c, dir, true, args)
}

func gitRun(c *core.Call, dir string, merge bool, args []string) (string, error) {
	env := map[string]string{"GIT_TERMINAL_PROMPT": "0", "LANGUAGE": "C"}
	if id := c.Strings("identity"); len(id) > 0 {
		var b strings.Builder
		b.WriteString("ssh -o BatchMode=yes -o IdentitiesOnly=yes")
		for _, i := range id {
			b.WriteString(" -i '" + strings.ReplaceAll(i, "'", `'\''`) + "'")
		}
		env["GIT_SSH_COMMAND"] = b.String()
	}
	login, err := gitLogin(c)
	if err != nil {
		return "", err
	}
	maps.Copy(env, login)
	user := c.Str("user", c.Str("runas", c.RunAs))
	if c.Output != nil && dir != "/" {
		if err := c.ManualAt(dir); err != nil {
			return "", err
		}
	}
	out, err := c.ToolShell(host.Shell{Argv: append([]string{"git"}, args...), Dir: dir, RunAs: user, Env: env, Merge: merge})
	if enc := c.Str("output_encoding", ""); enc != "" {
		out = codecs.Decode(out, enc)
		var failed *core.ToolError
		if errors.As(err, &failed) {
			failed.Stderr = codecs.Decode(failed.Stderr, enc)
		}
	}
	return out, err
}

func gitQuiet(c *core.Call, dir string, args ...string) (string, error) {
	q := *c
	q.Output = nil
	return git(&q, dir, args...)
}

func gitReady(c *core.Call, target string) string {
	switch {
	case !c.Installed("git"):
		return "git is not installed on this machine"
	case target == "":
		return "'target' option is required"
	case !filepath.IsAbs(target):
		return "target '" + target + "' is not an absolute path"
	}
	return ""
}

// gitLatest implements git.latest. Source: Salt documentation, git state, latest; salt/states/git.py.
func gitLatest(c *core.Call) core.Return {
	target := strings.TrimSuffix(c.ExpandUser(c.Str("target", "")), "/")
	if target == "" && !strings.Contains(c.Name, "://") && c.Function != "git.latest" {
		target = c.Name
	}
	if fail := gitReady(c, target); fail != "" {
		return core.Failf("%s", fail)
	}
	if fail := badLatest(c); fail != "" {
		return core.Failf("%s", fail)
	}
	w := newGitWork(c, target)
	if _, err := gitLogin(c); err != nil {
		return core.Failf("%s", err)
	}
	if w.bare && w.rev != "HEAD" {
		return core.Failf("'rev' is not compatible with the 'mirror' and 'bare' arguments")
	}
	switch there := isRepo(target, w.bare); {
	case there && w.bare:
		return w.bareUpdate()
	case there:
		return w.update()
	}
	return w.clone()
}

// badLatest names an argument of git.latest that Salt refuses. An empty one does not count as left out, so that a value which a template
// did not find deploys no other revision.
func badLatest(c *core.Call) string {
	if v, ok := c.Args.GetStr("remote"); ok && !py.Truth(v) {
		return "'remote' argument is required"
	}
	if v, ok := c.Args.GetStr("rev"); ok && !py.Truth(v) {
		return "'" + py.Str(v) + "' is not a valid value for the 'rev' argument"
	}
	switch v, ok := c.Args.GetStr("force_reset"); v {
	case true, false, "remote-changes", int64(1), int64(0):
	default:
		if ok {
			return "'force_reset' must be one of True, False, or 'remote-changes'"
		}
	}
	for _, path := range c.Strings("identity") {
		if path = c.ExpandUser(path); !filepath.IsAbs(path) && !strings.Contains(path, "salt://") {
			return "identity '" + path + "' is not an absolute path"
		}
	}
	return ""
}

// gitCloned implements git.cloned. Source: Salt documentation, git state, cloned.
func gitCloned(c *core.Call) core.Return {
	target := strings.TrimSuffix(c.ExpandUser(c.Str("target", "")), "/")
	if fail := gitReady(c, target); fail != "" {
		return core.Failf("%s", fail)
	}
	w := newGitWork(c, target)
	with := ""
	if c.Has("branch") {
		if w.branch == "" {
			return core.Failf("Invalid 'branch' argument")
		}
		with = " with branch '" + w.branch + "'"
	}
	if core.Exists(target) {
		if _, err := gitQuiet(c, target, "status", "-z", "--porcelain"); err != nil {
			return core.Failf("%s", gitMessage(err))
		}
		return w.branchOf()
	}
	w.ret.Set("new", shownRemote(c)+" => "+target)
	if c.Test {
		return w.would(shownRemote(c) + " would be cloned to " + target + with)
	}
	if _, err := gitLogin(c); err != nil {
		return core.Failf("%s", err)
	}
	if fail := makeTarget(c, target); fail != "" {
		return core.Failf("%s", fail)
	}
	defer func() { _ = os.Remove(target) }() // an empty one, where the clone failed
	args := []string{"clone"}
	if w.branch != "" {
		args = append(args, "--branch", w.branch)
	}
	if _, err := git(c, "/", append(args, "--", c.Name, target)...); err != nil {
		return core.Failf("Clone failed: %s", gitMessage(err))
	}
	w.ret.Comment = shownRemote(c) + " cloned to " + target + with
	return w.ret
}

// branchOf is git.cloned if there is a repository.
func (w *gitWork) branchOf() core.Return {
	_, now := w.head()
	switch {
	case w.branch == "":
		return core.OKf("Repository already exists at %s", w.target)
	case now == w.branch:
		return core.OKf("Repository already exists at %s and is checked out to branch '%s'", w.target, w.branch)
	}
	w.ret.Set("branch", py.NewDict("old", now, "new", w.branch))
	if w.c.Test {
		return w.would("Branch would be changed to '" + w.branch + "'")
	}
	args := []string{"checkout", w.branch}
	if _, ok := w.query("rev-parse", "--verify", "--quiet", w.branch); !ok {
		args = []string{"checkout", "-b", w.branch, "origin/" + w.branch}
	}
	if err := w.git(args...); err != nil {
		return core.Failf("Failed to change branch to '%s': %s", w.branch, gitMessage(err))
	}
	w.ret.Comment = "Branch changed to '" + w.branch + "'"
	return w.ret
}

// gitPresent implements git.present. Source: Salt documentation, git state, present.
func gitPresent(c *core.Call) core.Return {
	name := strings.TrimSuffix(c.ExpandUser(c.Name), "/")
	bare := c.Bool("bare", true)
	switch {
	case !c.Installed("git"):
		return core.Failf("git is not installed on this machine")
	case !filepath.IsAbs(name):
		return core.Failf("Path '%s' is not absolute", name)
	case bare && core.IsFile(filepath.Join(name, "HEAD")), !bare && core.Lexists(filepath.Join(name, ".git")):
		return core.OKf("")
	}
	kind := "" // as Salt names it
	if bare {
		kind = "bare "
	}
	ret := core.Return{Result: core.True}
	if entries, err := os.ReadDir(name); err == nil {
		switch {
		case c.Bool("force", false) && c.Test:
			ret.Set("new", name)
			ret.Set("forced init", true)
			ret.Result = core.None
			ret.Comment = "Target directory " + name + " exists. Since force=True, the contents of " + name + " would be deleted, and a " + kind + "repository would be initialized in its place."
			return ret
		case c.Bool("force", false):
			if err := c.RemoveAll(name); err != nil {
				return core.Failf("Unable to remove %s: %s", name, err)
			}
			ret.Set("forced init", true)
		case len(entries) > 0:
			return core.Failf("Target '%s' exists, is non-empty, and is not a git repository. Set the 'force' option to True to remove this directory's contents and proceed with initializing a repository", name)
		}
	}
	ret.Set("new", name)
	if c.Test {
		ret.Result, ret.Comment = core.None, "New "+kind+"repository would be created"
		return ret
	}
	if !core.Lexists(name) {
		defer func() { _ = os.Remove(name) }() // an empty one, where git fails
	}
	if fail := makeTarget(c, name); fail != "" {
		return core.Failf("%s", fail)
	}
	args := []string{"init", "--quiet"}
	if bare {
		args = append(args, "--bare")
	}
	actions := []string{"Initialized " + kind + "repository in " + name}
	if t := c.Str("template", ""); t != "" {
		args = append(args, "--template="+t)
		actions = append(actions, "Template directory set to "+t)
	}
	if d := c.Str("separate_git_dir", ""); d != "" {
		args = append(args, "--separate-git-dir="+d)
		actions = append(actions, "Gitdir set to "+d)
	}
	if v, ok := c.Value("shared"); ok {
		if n, isInt := v.(int64); isInt {
			args = append(args, fmt.Sprintf("--shared=0%d", n))
		} else {
			args = append(args, "--shared="+strings.ToLower(py.Str(v)))
		}
	}
	if _, err := git(c, "/", append(args, "--", name)...); err != nil {
		return core.Failf("%s", gitMessage(err))
	}
	ret.Comment = joinComments(actions)
	return ret
}
