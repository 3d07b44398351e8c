package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// gitWork is one run of git.latest. Its questions and its words are Salt's, in their order.
type gitWork struct {
	c                           *core.Call
	target, remote, rev, branch string
	ret                         core.Return
	comments                    []string

	refs     map[string]string // of the remote
	sha      string            // the wanted commit, "" if the remote is empty
	kind     string            // branch, tag or sha1
	upstream string            // the branch of the remote that is to be followed
	follow   bool              // that matters: rev is not HEAD
	loc      string            // what is requested, for people
	bare     bool              // the repository is one, or a mirror
}

func newGitWork(c *core.Call, target string) *gitWork {
	return &gitWork{c: c, target: target, remote: c.Str("remote", c.Str("remote_name", "origin")), rev: c.Str("rev", "HEAD"),
		branch: c.Str("branch", ""), bare: c.Bool("bare", false) || c.Bool("mirror", false), ret: core.Return{Result: core.True}}
}

func (w *gitWork) addComment(comment string) { w.comments = append(w.comments, comment) }

func joinComments(comments []string) string {
	out := strings.Join(comments, ". ")
	if len(comments) > 1 {
		out += "."
	}
	return out
}

func (w *gitWork) fail(msg string) core.Return {
	if len(w.comments) > 0 {
		msg += "\n\nChanges already made: " + joinComments(w.comments)
	}
	w.ret.Result, w.ret.Comment = core.False, msg
	return w.ret
}

func (w *gitWork) upToDate(dirty bool, comments []string) core.Return {
	w.ret.Comment = "Repository " + w.target + " is up-to-date"
	if dirty {
		w.ret.Comment += ", but with uncommitted changes. Set 'force_reset' to True to purge uncommitted changes."
	}
	if len(comments) > 0 {
		would := ""
		if w.c.Test {
			would = "that would be "
		}
		w.ret.Comment += "\n\nChanges " + would + "made: " + joinComments(comments)
	}
	return w.ret
}

func (w *gitWork) would(msg string) core.Return {
	w.ret.Result, w.ret.Comment = core.None, msg
	return w.ret
}

// gitMessage returns git's message when it failed.
func gitMessage(err error) string {
	var t *core.ToolError
	if errors.As(err, &t) && t.Stderr != "" {
		return t.Stderr
	}
	return err.Error()
}

func (w *gitWork) git(args ...string) error { _, err := git(w.c, w.target, args...); return err }

// query returns the one line that git prints; ok is false if it fails.
func (w *gitWork) query(args ...string) (string, bool) {
	out, err := gitQuiet(w.c, w.target, args...)
	return strings.TrimSpace(out), err == nil
}

func (w *gitWork) commit(rev string) string {
	sha, ok := w.query("rev-parse", "--verify", "--quiet", rev+"^{commit}")
	if !ok {
		return ""
	}
	return sha
}

func (w *gitWork) names(kind string) []string {
	out, _ := w.query("for-each-ref", "--format", "%(refname:lstrip=2)", "refs/"+kind+"/")
	return strings.Fields(out)
}

// head returns the local branch, and the commit that is checked out.
func (w *gitWork) head() (sha, branch string) {
	if at, ok := w.query("rev-parse", "--abbrev-ref", "HEAD"); ok { // it prints HEAD if there is no commit yet, and fails
		branch = at
	}
	sha, _ = w.query("rev-parse", "--verify", "--quiet", "HEAD") // of a commit that may be missing
	return sha, branch
}

// unreachable begins the complaint about a remote that does not answer.
const unreachable = "Failed to check remote refs: "

const needsRev = "When 'depth' is used, 'rev' must be set to the name of a branch or tag on the remote repository"

// resolve reads the refs of the remote, and finds the requested one. The string is Salt's error message.
func (w *gitWork) resolve() (complaint string) {
	out, err := gitQuiet(w.c, "/", "ls-remote", "--", w.c.Name)
	if err != nil {
		return unreachable + gitMessage(err)
	}
	w.refs = map[string]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 2 {
			w.refs[f[1]] = f[0]
		}
	}
	if w.bare {
		if w.c.Has("depth") {
			return needsRev
		}
		return ""
	}
	hex := len(w.rev) <= 40 && strings.Trim(w.rev, "0123456789abcdefABCDEF") == ""
	w.follow = true
	for _, k := range []struct{ ref, kind string }{{"refs/heads/" + w.rev, "branch"}, {"refs/tags/" + w.rev + "^{}", "tag"}, {"refs/tags/" + w.rev, "tag"}} {
		if w.sha == "" && w.rev != "HEAD" && w.refs[k.ref] != "" {
			w.sha, w.kind = w.refs[k.ref], k.kind
		}
	}
	switch {
	case w.rev == "HEAD":
		w.sha, w.follow = w.refs["HEAD"], false
		if w.sha != "" {
			w.kind, w.loc = "sha1", "remote HEAD ("+short(w.sha)+")"
		}
	case w.kind == "branch":
		w.upstream = w.remote + "/" + w.rev
		w.loc = w.upstream + " (" + short(w.sha) + ")"
	case w.kind == "tag":
		w.loc = w.rev + " (" + short(w.sha) + ")"
	case hex:
		w.rev = strings.ToLower(w.rev)
		w.sha, w.kind, w.loc = w.rev, "sha1", short(w.rev)
	}
	switch {
	case w.c.Has("depth") && w.kind != "branch" && w.kind != "tag":
		return needsRev
	case w.sha == "" && w.rev != "HEAD":
		return "No revision matching '" + w.rev + "' exists in the remote repository"
	}
	return ""
}

// defaultBranch returns the branch of the remote that its HEAD is on, "" if that is not known.
func (w *gitWork) defaultBranch() string {
	var names []string
	for ref, sha := range w.refs {
		if n, ok := strings.CutPrefix(ref, "refs/heads/"); ok && sha == w.refs["HEAD"] {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// equal compares a commit with the wanted one, which may be the beginning of one.
func (w *gitWork) equal(sha string) bool {
	if sha == "" || w.sha == "" {
		return sha == w.sha
	}
	return sha == w.sha || w.kind == "sha1" && strings.HasPrefix(sha, w.sha)
}

func short(sha string) string { return sha[:min(7, len(sha))] }

// tracking makes the local branch follow the right branch of the remote: it returns the arguments of git branch, nil
// if it does already or a new branch will, and what is done.
func (w *gitWork) tracking(upstream string, known bool) (args []string, action string) {
	set := func(action string) ([]string, string) {
		if w.branch != "" && !slices.Contains(w.names("heads"), w.branch) {
			return nil, action // the checkout of the new branch sets it
		}
		return []string{"branch", "--quiet", "--set-upstream-to", w.upstream}, action
	}
	switch {
	case !known && w.upstream != "":
		return set("Tracking branch was set to " + w.upstream)
	case known && w.upstream == "" && w.follow:
		return []string{"branch", "--unset-upstream"}, "Tracking branch was unset"
	case w.upstream != "" && upstream != w.upstream:
		return set("Tracking branch was updated to " + w.upstream)
	}
	return nil, ""
}

func (w *gitWork) upstreamOf(branch string) (string, bool) {
	up, ok := w.query("rev-parse", "--abbrev-ref", branch+"@{upstream}")
	return up, ok && branch != ""
}

func (w *gitWork) submodules() error {
	if !w.c.Bool("submodules", false) {
		return nil
	}
	return w.git("submodule", "update", "--init", "--recursive")
}

// clone is git.latest if there is no repository.
func (w *gitWork) clone() core.Return {
	c := w.c
	// In a test run, an earlier step may make the remote, or the account.
	if complaint := w.resolve(); complaint != "" && (!c.Test || !strings.HasPrefix(complaint, unreachable)) {
		return w.fail(complaint)
	}
	if core.IsFile(w.target) {
		return w.fail("Target '" + w.target + "' exists and is a regular file, cannot proceed")
	}
	entries, err := os.ReadDir(w.target)
	force := c.Bool("force_clone", c.Bool("force", false))
	switch {
	case err == nil && force && c.Test:
		w.ret.Set("forced clone", true)
		w.ret.Set("new", shownRemote(c)+" => "+w.target)
		return w.would("Target directory " + w.target + " exists. Since force_clone=True, the contents of " + w.target + " would be deleted, and " + shownRemote(c) + " would be cloned into this directory.")
	case len(entries) > 0 && !force:
		return w.fail("Target '" + w.target + "' exists, is non-empty and is not a git repository. Set the 'force_clone' option to True to remove this directory's contents and proceed with cloning the remote repository")
	case c.Test:
		w.ret.Set("new", shownRemote(c)+" => "+w.target)
		return w.would("Repository " + shownRemote(c) + " would be cloned to " + w.target)
	}
	if err == nil && force {
		for _, e := range entries {
			if err := c.RemoveAll(filepath.Join(w.target, e.Name())); err != nil {
				return w.fail("Unable to remove\n  " + filepath.Join(w.target, e.Name()) + "\n    " + err.Error())
			}
		}
		w.ret.Set("forced clone", true)
	}
	if fail := makeTarget(c, w.target); fail != "" {
		return w.fail(fail)
	}
	var opts []string
	as := ""
	switch {
	case c.Bool("mirror", false):
		opts, as = []string{"--mirror"}, " as mirror"
	case w.bare:
		opts, as = []string{"--bare"}, " as bare repository"
	}
	if w.remote != "origin" {
		opts = append(opts, "--origin", w.remote)
	}
	if d := c.Str("depth", ""); d != "" {
		opts = append(opts, "--depth", d, "--branch", w.rev)
	}
	if _, err := git(c, "/", slices.Concat([]string{"clone"}, opts, []string{"--", c.Name, w.target})...); err != nil {
		_ = os.Remove(w.target) // an empty one, which was made for the clone
		return w.fail("Clone failed: " + gitMessage(err))
	}
	w.ret.Set("new", shownRemote(c)+" => "+w.target)
	w.addComment(shownRemote(c) + " cloned to " + w.target + as)
	if w.sha != "" {
		if done := w.checkout(); done != nil {
			return *done
		}
		if err := w.submodules(); err != nil {
			return w.fail("Failed to update submodules: " + gitMessage(err))
		}
	}
	w.ret.Comment = joinComments(w.comments)
	sha := ""
	if w.bare {
		sha = w.bareHead()
	} else {
		sha = w.commit("HEAD")
	}
	if sha != "" {
		w.ret.Set("revision", py.NewDict("old", nil, "new", sha))
	}
	return w.ret
}

// checkout brings a new clone to its branch and commit. A result ends the state.
func (w *gitWork) checkout() *core.Return {
	failed := func(msg string) *core.Return { r := w.fail(msg); return &r }
	if w.kind == "tag" && !slices.Contains(w.names("tags"), w.rev) {
		return failed("Revision '" + w.rev + "' does not exist in clone")
	}
	if w.branch != "" && !slices.Contains(w.names("heads"), w.branch) {
		if err := w.git("checkout", "-b", w.branch, w.start()); err != nil {
			return failed(gitMessage(err))
		}
		w.addComment("Branch '" + w.branch + "' checked out, with " + w.loc + " as a starting point")
	}
	sha, branch := w.head()
	if branch == "" && w.refs["HEAD"] == "" {
		return failed("Remote HEAD refers to a ref that does not exist. This can happen when the default branch on the remote repository is renamed or deleted. If you are unable to fix the remote repository, you can work around this by setting the 'branch' argument (which will ensure that the named branch is created if it does not already exist).")
	}
	if !w.equal(sha) {
		if err := w.git("reset", "--hard", w.sha); err != nil {
			return failed(gitMessage(err))
		}
		w.addComment("Repository was reset to " + w.loc)
	}
	args, action := w.tracking(w.upstreamOf(branch))
	if args != nil {
		if err := w.git(args...); err != nil {
			return failed(gitMessage(err))
		}
		w.addComment(action)
	}
	return nil
}

// start returns where a new branch begins.
func (w *gitWork) start() string {
	switch {
	case w.rev == "HEAD":
		return w.sha
	case w.upstream != "":
		return w.upstream
	}
	return w.rev
}

// makeTarget makes the directory of a clone, which the user of the state may not be allowed to do. It returns what
// failed, in words.
func makeTarget(c *core.Call, target string) string {
	if parent := filepath.Dir(target); !core.IsDir(parent) {
		if err := c.MakeDirs(parent, core.Owner{}, nil); err != nil {
			return core.Cause(err)
		}
	}
	if err := c.BeforeWhole(target); err != nil {
		return core.Cause(err)
	}
	if core.IsDir(target) {
		return ""
	}
	if err := os.Mkdir(target, 0o755); err != nil {
		return core.Cause(err)
	}
	if cred, err := c.Host.CredFor(c.Str("user", c.Str("runas", c.RunAs))); err == nil && cred != nil {
		if err := os.Chown(target, cred.UID, cred.GID); err != nil {
			return core.Cause(err)
		}
	}
	return ""
}
