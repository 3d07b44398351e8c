package git

import (
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// gitState is what an update finds in the local repository.
type gitState struct {
	sha, branch  string // what is checked out
	base, baseOn string // what is compared: another branch, if one is requested
	switches     bool   // to another branch
	exists       bool   // that branch
	dirty        bool
	match        bool // the wanted commit is checked out
	has          bool // it is in the repository
	forward      int  // -1: no fast-forward, 1: one, 0: not known before the fetch
}

// update is git.latest if there is a repository.
func (w *gitWork) update() core.Return {
	c := w.c
	if complaint := w.resolve(); complaint != "" {
		if c.Test && strings.HasPrefix(complaint, unreachable) { // an earlier step may make the remote
			return w.would("Repository " + w.target + " would be updated")
		}
		return w.fail(complaint)
	}
	s, done := w.local()
	if done != nil {
		return *done
	}
	updateHead := c.Bool("update_head", true)
	if s.has && !s.match && !updateHead && !s.switches {
		return w.keepHead(s, " is already present and local HEAD ("+short(s.sha)+") does not match, but update_head=False. HEAD has not been updated locally.")
	}
	reset, _ := c.Value("force_reset")
	forced := py.Truth(reset)
	if s.forward < 0 && !forced {
		return w.notForward(s)
	}
	upstream, known := w.upstreamOf(s.baseOn)
	url, there := w.query("config", "--get", "remote."+w.remote+".url")
	if c.Test {
		return w.plan(s, url, there, upstream, known, forced, updateHead)
	}
	if w.sha != "" && (!there || url != c.Name) {
		if done := w.setRemote(url, there); done != nil {
			return *done
		}
	}
	if w.sha != "" {
		if done := w.move(&s, upstream, known, forced, updateHead); done != nil {
			return *done
		}
	}
	now := w.commit("HEAD")
	switch {
	case !w.equal(now):
		return w.fail("Failed to update repository")
	case now == s.sha:
		return w.upToDate(false, w.comments)
	}
	w.ret.Comment = joinComments(w.comments)
	w.ret.Set("revision", py.NewDict("old", orNil(s.sha), "new", now))
	return w.ret
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// keepHead returns the result if update_head is false.
func (w *gitWork) keepHead(_ gitState, text string) core.Return {
	loc := w.loc
	if w.rev == "HEAD" { // as str.capitalize does
		loc = "R" + strings.ToLower(loc[1:])
	}
	w.ret.Comment = loc + text
	return w.ret
}

// local looks at the local repository. A result ends the state.
func (w *gitWork) local() (s gitState, done *core.Return) {
	end := func(r core.Return) (gitState, *core.Return) { return s, &r }
	s.sha, s.branch = w.head()
	if w.sha == "" && s.sha != "" {
		return end(w.fail("Remote repository is empty, cannot update from a non-empty to an empty repository"))
	}
	s.base, s.baseOn = s.sha, s.branch
	s.switches = w.branch != "" && w.branch != s.branch
	s.exists = slices.Contains(w.names("heads"), w.branch)
	switch {
	case s.switches && s.exists:
		s.base, s.baseOn = w.commit("refs/heads/"+w.branch), w.branch
	case s.switches:
		s.base = w.sha
	}
	s.match = w.equal(s.sha)
	diff, _ := w.query("diff", "HEAD")
	s.dirty = diff != ""
	reset, _ := w.c.Value("force_reset")
	if s.dirty && s.match {
		if reset != true {
			return end(w.upToDate(true, w.comments))
		}
		if w.c.Test {
			w.ret.Set("forced update", true)
			return end(w.would(w.target + " is up-to-date, but with uncommitted changes. Since 'force_reset' is set to True, these local changes would be reset. To only reset when there are changes in the remote repository, set 'force_reset' to 'remote-changes'."))
		}
	}
	if s.has = w.kind == "sha1" && s.base != "" && strings.HasPrefix(s.base, w.sha); !s.has && w.sha != "" && w.commit(w.sha) != "" {
		switch w.kind {
		case "branch":
			local, _ := w.query("rev-parse", "--verify", "--quiet", "refs/remotes/"+w.upstream)
			s.has = local == w.sha
		case "tag":
			if slices.Contains(w.names("tags"), w.rev) {
				local := w.commit("refs/tags/" + w.rev)
				s.has = local == w.sha
				if !s.has && !py.Truth(reset) {
					return end(w.fail("'" + w.rev + "' is a tag, but the remote SHA1 for this tag (" + short(w.sha) + ") doesn't match the local SHA1 (" + short(local) + "). Set 'force_reset' to True to force this update."))
				}
			}
		default:
			s.has = true
		}
	}
	if s.dirty && reset != "remote-changes" {
		s.forward = -1
	} else if s.has {
		s.forward = w.ancestor(s.base)
	}
	return s, nil
}

// ancestor reports whether the wanted commit is a fast-forward of another: 1 if it is, otherwise -1.
func (w *gitWork) ancestor(base string) int {
	if base == "" {
		return 1
	}
	if _, ok := w.query("merge-base", "--is-ancestor", base, w.sha); ok {
		return 1
	}
	return -1
}

func (w *gitWork) notForward(s gitState) core.Return {
	about := ""
	if def := w.defaultBranch(); w.branch == "" {
		switch {
		case w.rev != "HEAD" && s.branch != w.rev:
			about = " The desired rev (" + w.rev + ") differs from the name of the local branch (" + s.branch + "), if the desired rev is a branch name then a forced update could possibly be avoided by setting the 'branch' argument to '" + w.rev + "' instead."
		case w.rev == "HEAD" && def != "" && s.branch != def:
			about = " The default remote branch (" + def + ") differs from the local branch (" + s.branch + "). This could be caused by changing the default remote branch, or if the local branch was manually changed. Rather than forcing an update, it may be advisable to set the 'branch' argument to '" +
				def + "' instead. To ensure that this state follows the '" + def + "' branch instead of the remote HEAD, set the 'rev' argument to '" + def + "'."
		}
	}
	span := "to " + short(w.sha)
	if s.dirty && short(s.base) != short(w.sha) {
		span = "from " + short(s.base) + " " + span
	}
	if s.switches {
		span += " (after checking out local branch '" + w.branch + "')"
	}
	if s.dirty {
		return w.fail("Repository would be updated " + span + ", but there are uncommitted changes. Set 'force_reset' to True (or 'remote-changes') to force this update and discard these changes." + about)
	}
	return w.fail("Repository would be updated " + span + ", but this is not a fast-forward merge. Set 'force_reset' to True to force this update." + about)
}

func (w *gitWork) setRemote(url string, there bool) *core.Return {
	args := []string{"remote", "set-url", w.remote, w.c.Name}
	if !there {
		args[1] = "add"
	}
	if err := w.git(args...); err != nil {
		r := w.fail(gitMessage(err))
		return &r
	}
	if there {
		w.addComment("Remote '" + w.remote + "' changed from " + markedURL(url) + " to " + markedRemote(w.c))
		return nil
	}
	w.addComment("Remote '" + w.remote + "' set to " + markedRemote(w.c))
	w.ret.Set("new", shownRemote(w.c)+" => "+w.remote)
	return nil
}

// tags deletes what the remote no longer has, with sync_tags, and reports whether there is something to fetch.
func (w *gitWork) tags() (differ bool) {
	local, remote := w.names("tags"), []string{}
	for ref := range w.refs {
		if n, ok := strings.CutPrefix(ref, "refs/tags/"); ok && !strings.HasSuffix(n, "^{}") {
			remote = append(remote, n)
		}
	}
	slices.Sort(remote)
	fresh, gone := py.NewList(), []string{}
	for _, n := range remote {
		if !slices.Contains(local, n) {
			fresh.Append(n)
		}
	}
	for _, n := range local {
		if !slices.Contains(remote, n) {
			gone = append(gone, n)
		}
	}
	if fresh.Len() > 0 {
		w.ret.Set("new_tags", fresh)
	}
	if w.c.Bool("sync_tags", true) {
		deleted := py.NewList()
		var names []string
		for _, n := range gone {
			if err := w.git("tag", "-d", n); err != nil {
				w.ret.Warnings = append(w.ret.Warnings, "Failed to remove local tag '"+n+"':\n\n"+gitMessage(err)+"\n\n")
				continue
			}
			deleted.Append(n)
			names = append(names, n)
		}
		if len(names) > 0 {
			w.ret.Set("deleted_tags", deleted)
			w.addComment("The following tags were removed from the local checkout: " + strings.Join(names, ", "))
		}
	}
	return fresh.Len()+len(gone) > 0
}

// gitFetched matches a line of git fetch about a change that was not forced.
// Source: salt/modules/git.py, fetch.
var gitFetched = regexp.MustCompile(`(?m)^[\s*]*(?:[0-9a-f]+\.\.[0-9a-f]+|\[(?:new (?:tag|branch)|tag update)\])\s+.+->`)

// fetchRefs fetches what refspec_branch and refspec_tag name, all of its history (depth is of the first clone only, as in Salt), and reports whether that changed a ref. A result ends the
// state.
func (w *gitWork) fetchRefs() (updated bool, done *core.Return) {
	args := []string{"fetch"}
	if w.c.Bool("force_fetch", false) {
		args = append(args, "--force")
	}
	args = append(args, w.remote)
	if w.c.Bool("fetch_tags", true) {
		b, t := w.c.Str("refspec_branch", "*"), w.c.Str("refspec_tag", "*")
		args = append(args, "refs/heads/"+b+":refs/remotes/"+w.remote+"/"+b, "+refs/tags/"+t+":refs/tags/"+t)
	}
	out, err := gitMerged(w.c, w.target, args...)
	if err != nil {
		r := w.fail("Fetch failed. Set 'force_fetch' to True to force the fetch if the failure was due to not being able to fast-forward. Output of the fetch command follows:\n\n" + gitMessage(err))
		return false, &r
	}
	return gitFetched.MatchString(out), nil
}

// fetch is fetchRefs for a work tree.
func (w *gitWork) fetch() *core.Return {
	updated, done := w.fetchRefs()
	if done != nil {
		return done
	}
	if updated {
		w.addComment(shownRemote(w.c) + " was fetched, resulting in updated refs")
	}
	if w.commit(w.sha) == "" {
		r := w.fail("Fetch did not successfully retrieve rev '" + w.rev + "' from " + shownRemote(w.c) + ": ")
		r.Comment = strings.TrimSuffix(r.Comment, " ")
		return &r
	}
	return nil
}

// move brings the work tree to the wanted commit. A result ends the state.
func (w *gitWork) move(s *gitState, upstream string, known, forced, updateHead bool) *core.Return {
	end := func(r core.Return) *core.Return { return &r }
	track, action := w.tracking(upstream, known)
	if track != nil && s.branch == "" {
		return end(w.fail("Cannot set/unset upstream tracking branch, local HEAD refers to nonexistent branch. This may have been caused by cloning a remote repository for which the default branch was renamed or deleted. If you are unable to fix the remote repository, you can work around this by setting the 'branch' argument (which will ensure that the named branch is created if it does not already exist)."))
	}
	if differ := w.tags(); differ || !s.has {
		if done := w.fetch(); done != nil {
			return done
		}
		if !s.match && !updateHead && !s.switches {
			return end(w.keepHead(*s, " is already present and local HEAD ("+short(s.sha)+") does not match, but update_head=False. HEAD has not been updated locally."))
		}
		s.forward = w.ancestor(s.base)
		if !forced && (s.forward < 0 || s.dirty) {
			return end(w.notForward(*s))
		}
	}
	if s.switches {
		if s.dirty && !w.c.Bool("force_checkout", false) {
			return end(w.fail("Local branch '" + s.branch + "' has uncommitted changes. Set 'force_checkout' to True to discard them and proceed."))
		}
		args := []string{"checkout"}
		if w.c.Bool("force_checkout", false) {
			args = append(args, "--force")
		}
		if s.exists {
			args = append(args, w.branch)
		} else {
			args = append(args, "-b", w.branch, w.start())
		}
		if err := w.git(args...); err != nil {
			return end(w.fail(gitMessage(err)))
		}
		if s.exists {
			w.addComment("'" + w.branch + "' was checked out")
		} else {
			w.addComment("New branch '" + w.branch + "' was checked out, with " + w.loc + " as a starting point")
		}
	}
	switch {
	case s.forward < 0:
		if err := w.git("reset", "--hard", w.sha); err != nil {
			return end(w.fail(gitMessage(err)))
		}
		w.ret.Set("forced update", true)
		if s.dirty {
			w.addComment("Uncommitted changes were discarded")
		}
		w.addComment("Repository was hard-reset to " + w.loc)
	case s.dirty && forced:
		if err := w.git("checkout", "--", "."); err != nil {
			return end(w.fail(gitMessage(err)))
		}
		w.addComment("Uncommitted changes were discarded")
	}
	if track != nil {
		if err := w.git(track...); err != nil {
			return end(w.fail(gitMessage(err)))
		}
		w.addComment(action)
	}
	if s.forward > 0 && !w.equal(s.base) {
		if done := w.forward(); done != nil {
			return done
		}
	}
	if err := w.submodules(); err != nil {
		return end(w.fail("Failed to update submodules: " + gitMessage(err)))
	}
	return nil
}

func (w *gitWork) forward() *core.Return {
	end := func(msg string) *core.Return { r := w.fail(msg); return &r }
	if w.upstream == "" && w.rev != "HEAD" {
		if err := w.git("reset", "--hard", w.rev); err != nil {
			return end(gitMessage(err))
		}
		w.addComment("Repository was reset to " + w.rev + " (fast-forward)")
		return nil
	}
	if _, on := w.query("symbolic-ref", "--quiet", "HEAD"); !on {
		return end("Unable to fast-forward, HEAD is detached")
	}
	if err := w.git("merge", "--ff-only", w.sha); err != nil {
		return end(gitMessage(err))
	}
	w.addComment("Repository was fast-forwarded to " + w.loc)
	return nil
}

// plan returns the end of a test run.
func (w *gitWork) plan(s gitState, url string, there bool, upstream string, known, forced, updateHead bool) core.Return {
	var actions []string
	say := func(a string) { actions = append(actions, a) }
	if w.sha == "" {
		return w.upToDate(false, nil)
	}
	act := map[int]string{-1: "hard-reset", 0: "updated", 1: "fast-forwarded"}[s.forward]
	moved := py.NewDict("old", orNil(s.sha), "new", w.sha)
	if !there || url != w.c.Name {
		from := "None"
		if there {
			from = markedURL(url)
		}
		say("Remote '" + w.remote + "' would be changed from " + from + " to " + markedRemote(w.c))
		if !s.has {
			say("Remote would be fetched")
		}
		if !s.match && updateHead {
			w.ret.Set("revision", moved)
			if s.forward < 0 {
				w.ret.Set("forced update", true)
			}
			say("Repository would be " + act + " to " + short(w.sha))
		}
		return w.planned(s, updateHead, actions)
	}
	if !s.has {
		say("Remote '" + w.remote + "' would be fetched")
	}
	if !s.match && (updateHead || s.switches) {
		w.ret.Set("revision", moved)
	}
	switch {
	case s.switches && !s.exists:
		say("New branch '" + w.branch + "' would be checked out, with " + w.loc + " as a starting point")
		if w.upstream != "" {
			say("Tracking branch would be set to " + w.upstream)
		}
	case s.switches:
		say("Branch '" + w.branch + "' would be checked out and " + act + " to " + short(w.sha))
	case s.match:
	case !updateHead:
		say("Local HEAD (" + short(s.sha) + ") does not match " + w.loc + " but update_head=False, HEAD would not be updated locally")
	default:
		if s.forward <= 0 {
			if act = "updated"; forced && s.has {
				act = "hard-reset"
			}
		}
		say("Repository would be " + act + " from " + short(s.sha) + " to " + short(w.sha))
	}
	switch {
	case !known && w.upstream != "":
		say("Tracking branch would be set to " + w.upstream)
	case known && w.upstream == "" && w.follow:
		say("Tracking branch would be unset")
	case w.upstream != "" && upstream != w.upstream:
		say("Tracking branch would be updated to " + w.upstream)
	}
	return w.planned(s, updateHead, actions)
}

func (w *gitWork) planned(s gitState, updateHead bool, actions []string) core.Return {
	switch {
	case w.ret.Changed():
		return w.would(joinComments(actions))
	case !s.match && !updateHead && len(actions) > 0:
		w.ret.Comment = joinComments(actions)
		return w.ret
	}
	return w.upToDate(false, actions)
}
