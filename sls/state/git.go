package state

import (
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addGit adds git.latest, and makina-states' mc_git.latest as the same, through the git of the machine.
func addGit(t *Table) {
	t.add("git.latest", "target! rev branch user runas update_head~true force_checkout force_clone force_fetch force_reset force submodules bare "+
		"mirror remote remote_name always_fetch? fetch_tags sync_tags~true depth identity https_user https_pass refspec_branch~* refspec_tag~* "+
		"use_vt password? output_encoding~", gitLatest)
	t.add("git.cloned", "target! branch user identity https_user https_pass password? output_encoding~", gitCloned)
	t.add("git.present", "force bare template separate_git_dir~ shared user password? output_encoding~", gitPresent)
	t.same("mc_git", "git")
}

// git runs git as the user of the state.
func (c *Call) git(dir string, args ...string) (string, error) {
	env := map[string]string{"GIT_TERMINAL_PROMPT": "0", "LANGUAGE": "C"}
	if id := c.strs("identity"); len(id) > 0 {
		var b strings.Builder
		b.WriteString("ssh -o BatchMode=yes -o IdentitiesOnly=yes")
		for _, i := range id {
			b.WriteString(" -i '" + strings.ReplaceAll(i, "'", `'\''`) + "'")
		}
		env["GIT_SSH_COMMAND"] = b.String()
	}
	user := c.str("user", c.str("runas", c.RunAs))
	return c.toolAs(host.Shell{Argv: append([]string{"git"}, args...), Dir: dir, RunAs: user, Env: env})
}

func (c *Call) gitQuiet(dir string, args ...string) (string, error) {
	q := *c
	q.Output = nil
	return q.git(dir, args...)
}

func isRepo(dir string) bool {
	return lexists(filepath.Join(dir, ".git")) || isFile(filepath.Join(dir, "HEAD")) && isDir(filepath.Join(dir, "objects"))
}

// gitURL is the remote without a password in it.
func (c *Call) gitURL() string { return redactURL(c.Name) }

func (c *Call) gitReady(target string) string {
	switch {
	case !c.installed("git"):
		return "git is not installed on this machine"
	case target == "":
		return "'target' option is required"
	case !filepath.IsAbs(target):
		return "target '" + target + "' is not an absolute path"
	case c.has("https_user") || c.has("https_pass"):
		return "https_user and https_pass are not supported by the built-in runner: use a credential helper or ssh"
	case c.boolean("bare", false) || c.boolean("mirror", false):
		return "bare and mirror are not supported by the built-in runner"
	}
	return ""
}

// gitLatest implements git.latest. Source: Salt documentation, git state, latest.
func gitLatest(c *Call) Return {
	target := strings.TrimSuffix(c.expand(c.str("target", "")), "/")
	if target == "" && !strings.Contains(c.Name, "://") && c.Function != "git.latest" {
		target = c.Name
	}
	if fail := c.gitReady(target); fail != "" {
		return Failf("%s", fail)
	}
	if !isRepo(target) {
		return c.gitClone(target)
	}
	return c.gitUpdate(target)
}

func (c *Call) rev() string { return c.str("rev", "HEAD") }

func (c *Call) remoteName() string { return c.str("remote", c.str("remote_name", "origin")) }

func (c *Call) gitClone(target string) Return {
	if entries, err := os.ReadDir(target); err == nil && len(entries) > 0 {
		if !c.boolean("force_clone", c.boolean("force", false)) {
			return Failf("Target '%s' exists, is non-empty and is not a git repository. Set the 'force_clone' option to True to remove this directory's contents and proceed with cloning the remote repository", target)
		}
		if !c.Test {
			for _, e := range entries {
				if err := os.RemoveAll(filepath.Join(target, e.Name())); err != nil {
					return Failf("%s", why(err))
				}
			}
		}
	}
	if c.Test {
		return Would(py.NewDict("new", c.gitURL()+" => "+target), "Repository %s would be cloned to %s", c.gitURL(), target)
	}
	parent := filepath.Dir(target)
	if !isDir(parent) {
		if err := c.makeDirs(parent, owner{}, nil); err != nil {
			return Failf("%s", why(err))
		}
	}
	// The directory is made first, for the user of the state may not write to its parent.
	if !isDir(target) {
		if err := os.Mkdir(target, 0o755); err != nil {
			return Failf("%s", why(err))
		}
		if cred, err := c.Host.CredFor(c.str("user", c.str("runas", c.RunAs))); err == nil && cred != nil {
			if err := os.Chown(target, cred.UID, cred.GID); err != nil {
				return Failf("%s", why(err))
			}
		}
	}
	args := []string{"clone", "--no-checkout", "--origin", c.remoteName()}
	if d := c.str("depth", ""); d != "" {
		args = append(args, "--depth", d)
		if b := c.rev(); b != "HEAD" {
			args = append(args, "--branch", b)
		}
	}
	if _, err := c.git("/", append(args, "--", c.Name, target)...); err != nil {
		return Failf("Clone failed: %s", err)
	}
	sha, ok := c.resolve(target)
	if !ok {
		if err := os.RemoveAll(target); err != nil {
			return Failf("%s", why(err))
		}
		return Failf("No revision matching '%s' exists in the remote repository", c.rev())
	}
	if r := c.gitCheckout(target, sha); r != "" {
		return Failf("%s", r)
	}
	ret := Return{Result: True, Comment: c.gitURL() + " cloned to " + target}
	if c.rev() != "HEAD" && !c.isRemoteBranch(target) {
		ret.Comment += ". Repository was reset to " + c.rev() + " (" + sha[:7] + "). Tracking branch was unset."
	}
	ret.Set("new", c.gitURL()+" => "+target)
	ret.Set("revision", py.NewDict("new", sha, "old", nil))
	return ret
}

// resolve finds the commit of rev: a branch of the remote, a tag, a commit.
func (c *Call) resolve(target string) (sha string, ok bool) {
	rev := c.rev()
	refs := []string{"refs/remotes/" + c.remoteName() + "/" + rev, "refs/tags/" + rev, rev}
	if rev == "HEAD" {
		refs = []string{"refs/remotes/" + c.remoteName() + "/HEAD", "FETCH_HEAD", "HEAD"}
	}
	for _, r := range refs {
		out, err := c.gitQuiet(target, "rev-parse", "--verify", "--quiet", r+"^{commit}")
		if err == nil && strings.TrimSpace(out) != "" {
			return strings.TrimSpace(out), true
		}
	}
	return "", false
}

// isRemoteBranch tells whether rev is a branch of the remote.
func (c *Call) isRemoteBranch(target string) bool {
	_, err := c.gitQuiet(target, "rev-parse", "--verify", "--quiet", "refs/remotes/"+c.remoteName()+"/"+c.rev())
	return err == nil
}

// gitCheckout puts the work tree on a commit, on the local branch that belongs to it. The text is what failed.
func (c *Call) gitCheckout(target, sha string) string {
	branch := c.str("branch", "")
	if branch == "" && c.rev() != "HEAD" && c.isRemoteBranch(target) {
		branch = c.rev()
	}
	args := []string{"checkout", "--quiet"}
	if c.boolean("force_checkout", false) || c.boolean("force_reset", false) {
		args = append(args, "--force")
	}
	switch {
	case branch != "":
		args = append(args, "-B", branch, sha)
	case c.rev() == "HEAD":
		// Stay on the branch that is checked out; move it.
		if _, err := c.git(target, "reset", "--hard", sha); err != nil {
			return "Unable to reset to " + sha + ": " + err.Error()
		}
		args = nil
	default:
		args = append(args, "--detach", sha)
	}
	if args != nil {
		if _, err := c.git(target, args...); err != nil {
			return "Unable to check out " + c.rev() + ": " + err.Error()
		}
		if branch != "" && c.isRemoteBranch(target) {
			_, _ = c.gitQuiet(target, "branch", "--quiet", "--set-upstream-to", c.remoteName()+"/"+c.rev(), branch)
		}
	}
	if c.boolean("submodules", false) {
		if _, err := c.git(target, "submodule", "update", "--init", "--recursive"); err != nil {
			return "Failed to update submodules: " + err.Error()
		}
	}
	return ""
}

func (c *Call) gitUpdate(target string) Return {
	old, err := c.gitQuiet(target, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	old = strings.TrimSpace(old)
	if err != nil {
		old = ""
	}
	remote := c.remoteName()
	have, err := c.gitQuiet(target, "config", "--get", "remote."+remote+".url")
	have = strings.TrimSpace(have)
	ret := Return{Result: True}
	if err != nil || have != c.Name {
		ret.Set("remotes/"+remote, py.NewDict("old", redactURL(have), "new", c.gitURL()))
		if !c.Test {
			if _, err := c.gitQuiet(target, "remote", "set-url", remote, c.Name); err != nil {
				if _, err := c.gitQuiet(target, "remote", "add", remote, c.Name); err != nil {
					return Failf("Unable to set the remote: %s", err)
				}
			}
		}
	}
	if c.Test {
		out, err := c.gitQuiet(target, "ls-remote", "--", c.Name, c.rev(), "refs/tags/"+c.rev()+"^{}")
		if err == nil && !ret.Changed() && old != "" && (strings.Contains(out, old) || strings.HasPrefix(old, c.rev())) {
			return OKf("Repository %s is up-to-date", target)
		}
		return Would(ret.Changes, "Repository %s would be updated", target)
	}
	args := []string{"fetch", remote}
	if c.boolean("force_fetch", false) {
		args = append(args, "--force")
	}
	if c.boolean("fetch_tags", true) {
		args = append(args, "--tags")
	}
	if d := c.str("depth", ""); d != "" {
		args = append(args, "--depth", d)
	}
	if _, err := c.git(target, args...); err != nil {
		return Failf("Fetch failed. Set 'force_fetch' to True to force the fetch if the failure was due to not being able to fast-forward. Output of the fetch command follows:\n\n%s", err)
	}
	if c.rev() == "HEAD" {
		_, _ = c.gitQuiet(target, "remote", "set-head", remote, "--auto")
	}
	sha, ok := c.resolve(target)
	if !ok {
		return Failf("No revision matching '%s' exists in the remote repository", c.rev())
	}
	if sha == old {
		if !ret.Changed() {
			return OKf("Repository %s is up-to-date", target)
		}
		ret.Comment = "Repository " + target + " is up-to-date, and its remote was set"
		return ret
	}
	dirty, _ := c.gitQuiet(target, "status", "--porcelain", "--untracked-files=no")
	forced := c.boolean("force_reset", false) || c.boolean("force_checkout", false)
	if strings.TrimSpace(dirty) != "" && !forced {
		return Failf("Repository would be updated from %s to %s, but there are uncommitted changes. Set 'force_reset' to True to force this update and discard these changes.", old[:min(7, len(old))], sha[:7])
	}
	if _, err := c.gitQuiet(target, "merge-base", "--is-ancestor", old, sha); err != nil && old != "" && !c.boolean("force_reset", false) &&
		c.isRemoteBranch(target) {
		return Failf("Repository would be updated from %s to %s, but this is not a fast-forward merge. Set 'force_reset' to True to force this update.", old[:min(7, len(old))], sha[:7])
	}
	if r := c.gitCheckout(target, sha); r != "" {
		return Failf("%s", r)
	}
	ret.Set("revision", py.NewDict("old", old, "new", sha))
	ret.Comment = "Repository was fast-forwarded from " + old[:min(7, len(old))] + " to " + sha[:7]
	return ret
}

func gitCloned(c *Call) Return {
	target := strings.TrimSuffix(c.expand(c.str("target", "")), "/")
	if fail := c.gitReady(target); fail != "" {
		return Failf("%s", fail)
	}
	with := ""
	if b := c.str("branch", ""); b != "" {
		c.Args.SetStr("rev", b)
		with = " with branch '" + b + "'"
	}
	if isRepo(target) {
		if with != "" {
			with = " and is checked out to branch '" + c.rev() + "'"
		}
		return OKf("Repository already exists at %s%s", target, with)
	}
	ret := c.gitClone(target)
	switch ret.Result {
	case None:
		ret.Comment = c.gitURL() + " would be cloned to " + target + with
	case True:
		ret.Changes.Delete("revision")
		ret.Comment = c.gitURL() + " cloned to " + target + with
	}
	return ret
}

func gitPresent(c *Call) Return {
	name := strings.TrimSuffix(c.expand(c.Name), "/")
	switch {
	case !c.installed("git"):
		return Failf("git is not installed on this machine")
	case !filepath.IsAbs(name):
		return Failf("Path '%s' is not absolute", name)
	case isRepo(name):
		return OKf("")
	}
	kind := "" // as Salt names it
	if c.boolean("bare", true) {
		kind = "bare "
	}
	if entries, err := os.ReadDir(name); err == nil && len(entries) > 0 && !c.boolean("force", false) {
		return Failf("Target '%s' exists, is non-empty, and is not a git repository. Set the 'force' option to True to proceed", name)
	}
	if c.Test {
		return Would(py.NewDict("new", name), "New %srepository would be created", kind)
	}
	if err := c.makeDirs(name, owner{}, nil); err != nil {
		return Failf("%s", why(err))
	}
	args := []string{"init", "--quiet"}
	if c.boolean("bare", true) {
		args = append(args, "--bare")
	}
	if s := c.str("shared", ""); s != "" {
		args = append(args, "--shared="+s)
	}
	if _, err := c.git("/", append(args, "--", name)...); err != nil {
		return Failf("%s", err)
	}
	return Return{Result: True, Comment: "Initialized " + kind + "repository in " + name, Changes: py.NewDict("new", name)}
}
