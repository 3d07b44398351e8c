package git

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
)

// isRepo reports whether git.latest updates what is at the path, or clones. Source: salt/states/git.py, latest; a directory
// inside a work tree that git worktree made counts, as in Salt.
func isRepo(dir string, bare bool) bool {
	if bare && core.IsDir(filepath.Join(dir, "refs")) || !bare && core.IsDir(filepath.Join(dir, ".git")) {
		return true
	}
	if !core.IsDir(dir) {
		return false
	}
	for at := dir; ; at = filepath.Dir(at) {
		if b, err := vfs.ReadFollowed(filepath.Join(at, ".git"), vfs.MaxRead); err == nil {
			f := strings.Fields(string(b))
			return len(f) > 1 && f[0] == "gitdir:" && filepath.IsAbs(f[1])
		}
		bareHere := core.IsFile(filepath.Join(at, "HEAD")) && core.IsDir(filepath.Join(at, "objects"))
		if at == filepath.Dir(at) || bareHere || core.IsDir(filepath.Join(at, ".git")) {
			return false
		}
	}
}

// shownRemote returns the remote as results show it.
func shownRemote(c *core.Call) string { return redactedURL(c.Name) }

// redactedURL returns an address without the parts that may be secret: a password, and the user of an address of HTTP, which may be a
// token.
func redactedURL(address string) string {
	if u, err := url.Parse(address); err == nil && u.User != nil && !strings.HasPrefix(strings.ToLower(u.Scheme), "http") {
		if _, secret := u.User.Password(); !secret {
			return address
		}
	}
	return fetch.RedactURL(address)
}

// markedURL returns an address as Salt writes it after reading the configuration: with a mark in place of the login.
// Source: salt/utils/url.py, redact_http_basic_auth.
func markedURL(address string) string {
	marked := regexp.MustCompile(`(?i)(https?)://.*@`).ReplaceAllString(address, "$1://<redacted>@")
	if marked == address {
		return redactedURL(address)
	}
	return marked
}

// markedRemote returns the remote marked, also if https_user logs in.
func markedRemote(c *core.Call) string {
	if rest, ok := strings.CutPrefix(c.Name, "https://"); ok && c.Has("https_user") {
		return "https://<redacted>@" + rest
	}
	return markedURL(c.Name)
}

var (
	errBasicAuth = errors.New("Basic Auth only supported for HTTPS") //nolint:staticcheck // Salt's words
	errNoUser    = errors.New("https_pass needs https_user")
)

// gitLogin returns the environment in which git logs in as https_user with https_pass; nil if neither is set. They go to git
// as answers of a credential helper that answers for the remote's own host only, through variables that no other user can
// read: they are in no command line, in no file, and in no address that git could show. Helpers of the machine are left
// out, so that none of them keeps the password. Source: gitcredentials(7); git-config(1), GIT_CONFIG_COUNT.
func gitLogin(c *core.Call) (map[string]string, error) {
	if !c.Has("https_user") && !c.Has("https_pass") {
		return nil, nil
	}
	u, err := url.Parse(c.Name)
	switch {
	case err != nil || u.Scheme != "https":
		return nil, errBasicAuth
	case !c.Has("https_user"):
		return nil, errNoUser
	}
	helper := "credential.https://" + u.Host + ".helper"
	answer := `!f() { test "$1" != get || printf 'username=%s\n' "$CORPUS_GIT_HTTPS_USER"; test "$1" != get || test -z "${CORPUS_GIT_HTTPS_PASS+x}" || printf 'password=%s\n' "$CORPUS_GIT_HTTPS_PASS"; }; f`
	env := map[string]string{"CORPUS_GIT_HTTPS_USER": c.Str("https_user", "")}
	n := 0 // what this process was given of this kind stays
	for _, kv := range c.Host.Environ {
		if v, ok := strings.CutPrefix(kv, "GIT_CONFIG_COUNT="); ok {
			n, _ = strconv.Atoi(v)
		}
	}
	for _, value := range []string{"", answer} { // the empty one leaves out the helpers of the machine
		env[fmt.Sprint("GIT_CONFIG_KEY_", n)], env[fmt.Sprint("GIT_CONFIG_VALUE_", n)] = helper, value
		n++
	}
	env["GIT_CONFIG_COUNT"] = strconv.Itoa(n)
	if c.Has("https_pass") {
		env["CORPUS_GIT_HTTPS_PASS"] = c.Str("https_pass", "")
	}
	return env, nil
}

// bareUpdate is git.latest if there is a bare repository: it is fetched into, and its HEAD is not changed.
func (w *gitWork) bareUpdate() core.Return {
	if complaint := w.resolve(); complaint != "" {
		if w.c.Test && strings.HasPrefix(complaint, unreachable) { // an earlier step may make the remote
			return w.would("Bare repository at " + w.target + " would be fetched")
		}
		return w.fail(complaint)
	}
	was := w.bareHead()
	if w.c.Test {
		return w.upToDate(false, []string{"Bare repository at " + w.target + " would be fetched"})
	}
	updated, done := w.fetchRefs()
	if done != nil {
		return *done
	}
	said := "Bare repository at " + w.target + " was fetched"
	if updated {
		said += ", resulting in updated refs"
	}
	w.addComment(said)
	now := w.bareHead()
	if now == was {
		return w.upToDate(false, w.comments)
	}
	w.ret.Comment = joinComments(w.comments)
	w.ret.Set("revision", py.NewDict("old", orNil(was), "new", orNil(now)))
	return w.ret
}

// bareHead returns the commit of HEAD by git rev-parse. If there is none, git treats the name as that of the file
// in the repository, and answers HEAD.
func (w *gitWork) bareHead() string {
	sha, ok := w.query("rev-parse", "HEAD")
	if !ok {
		return ""
	}
	return sha
}
