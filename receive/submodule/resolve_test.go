package submodule_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"corpus-git/git/store"
	"corpus-git/internal/fault"
	"corpus-git/receive/submodule"
)

// world is a superproject and the repositories of its submodules, all made by the machine's git.
type world struct {
	t    *testing.T
	dir  string
	said []string
	hid  []string
	res  *submodule.Resolver
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir()}
	n := 0
	w.res = &submodule.Resolver{
		Hosts: []string{"*", "127.0.0.1", "localhost"},
		Dir:   filepath.Join(w.dir, "modules"), Mode: 0o755, Bases: submodule.LocalBases("/app/project.git"), Agent: "test/1",
		ID: func() string { n++; return fmt.Sprint("q", n) }, Say: func(l string) { w.said = append(w.said, l) },
		Hide: func(s []string) { w.hid = append(w.hid, s...) }, Timeout: time.Minute,
	}
	w.repo("app")
	return w
}

func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(w.dir, dir), "-c", "user.name=M", "-c", "user.email=m@example.org", "-c", "protocol.file.allow=always", "-c", "gc.auto=0"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+w.dir)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(w.t, err, "git %v: %s", args, errs.String())
	return strings.TrimSpace(string(out))
}

func (w *world) repo(name string) {
	require.NoError(w.t, os.MkdirAll(filepath.Join(w.dir, name), 0o755))
	w.git(name, "init", "-q", "-b", "master")
	w.commit(name, "first", name+"\n")
}

func (w *world) commit(repo, msg, text string) plumbing.Hash {
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, repo, "file"), []byte(text), 0o644))
	w.git(repo, "add", "-A")
	w.git(repo, "commit", "-qm", msg)
	return plumbing.NewHash(w.git(repo, "rev-parse", "HEAD"))
}

// link makes a commit of repo in which each of paths is a submodule.
func (w *world) link(repo, path, url string, commit plumbing.Hash, more ...string) plumbing.Hash {
	file := filepath.Join(w.dir, repo, ".gitmodules")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(w.t, err)
	args := []string{"update-index", "--add"}
	for _, p := range append(more, path) {
		// An entry of the same path later in the file counts.
		_, err = fmt.Fprintf(f, "[submodule %q]\n\tpath = %s\n\turl = \"%s\"\n", p, p, url)
		require.NoError(w.t, err)
		args = append(args, "--cacheinfo", "160000,"+commit.String()+","+p)
	}
	require.NoError(w.t, f.Close())
	w.git(repo, append(args, ".gitmodules")...)
	w.git(repo, "commit", "-q", "--allow-empty", "-m", "submodule")
	return plumbing.NewHash(w.git(repo, "rev-parse", "HEAD"))
}

// resolve resolves a commit of app, and returns what was found.
func (w *world) resolve(commit plumbing.Hash) (*submodule.Set, error) {
	w.t.Helper()
	db, err := store.Open(filepath.Join(w.dir, "app", ".git"), store.Options{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = db.Close() })
	set, err := w.res.Resolve(context.Background(), db, commit)
	if set != nil {
		w.t.Cleanup(func() { _ = set.Close() })
	}
	return set, err
}

// here checks that a commit was fetched, alone or with its history, and that git reports no problems in the
// repository.
func (w *world) here(set *submodule.Set, i int, want plumbing.Hash, text string) {
	w.t.Helper()
	require.Greater(w.t, len(set.Modules), i)
	m := set.Modules[i]
	require.Equal(w.t, want, m.Commit)
	rel, err := filepath.Rel(w.dir, m.Repo)
	require.NoError(w.t, err)
	require.Equal(w.t, text, w.git(rel, "show", want.String()+":file"))
	w.git(rel, "fsck", "--strict")
	left, err := filepath.Glob(filepath.Join(m.Repo, "objects", "incoming-*"))
	require.NoError(w.t, err)
	require.Empty(w.t, left)
}

// smart is git-http-backend over the world's folder. change may answer itself, and then returns true.
func (w *world) smart(change func(http.ResponseWriter, *http.Request) bool) *httptest.Server {
	path := w.git(".", "--exec-path")
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if change != nil && change(rw, r) {
			return
		}
		(&cgi.Handler{Path: filepath.Join(path, "git-http-backend"), Env: []string{
			"GIT_PROJECT_ROOT=" + w.dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"), "HOME=" + w.dir, "GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		}}).ServeHTTP(rw, r)
	}))
	w.t.Cleanup(s.Close)
	return s
}

func TestFetchOverHTTP(t *testing.T) {
	for _, protocol := range []string{"2", "0"} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			w := newWorld(t)
			w.repo("lib")
			old := w.commit("lib", "old", "old\n")
			tip := w.commit("lib", "tip", "tip\n")
			var mu sync.Mutex
			requests := 0
			s := w.smart(func(_ http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				requests++
				mu.Unlock()
				if protocol == "0" {
					r.Header.Del("Git-Protocol")
				}
				return false
			})
			set, err := w.resolve(w.link("app", "lib", s.URL+"/lib/.git", tip))
			require.NoError(t, err)
			w.here(set, 0, tip, "tip")
			require.Equal(t, []string{"submodule lib: fetching " + s.URL + "/lib/.git (" + tip.String()[:7] + ")"}, w.said)
			shallow, err := os.ReadFile(filepath.Join(set.Modules[0].Repo, "shallow"))
			require.NoError(t, err)
			require.Equal(t, tip.String()+"\n", string(shallow))

			// An older one, which no ref names: by its name in protocol 2, with everything in protocol 0.
			set, err = w.resolve(w.link("app", "lib", s.URL+"/lib/.git", old))
			require.NoError(t, err)
			w.here(set, 0, old, "old")
			_, err = os.Stat(filepath.Join(set.Modules[0].Repo, "shallow"))
			require.Equal(t, protocol == "2", err == nil)

			// A newer one, for which only the difference is sent.
			next := w.commit("lib", "next", "next\n")
			set, err = w.resolve(w.link("app", "lib", s.URL+"/lib/.git", next))
			require.NoError(t, err)
			w.here(set, 0, next, "next")
			w.here(set, 0, next, "next")

			// One that is already stored.
			before := requests
			set, err = w.resolve(w.link("app", "lib", "http://127.0.0.1:1/elsewhere", tip))
			require.NoError(t, err)
			require.Len(t, set.Modules, 1)
			require.Equal(t, before, requests)

			// One that does not exist.
			_, err = w.resolve(w.link("app", "lib", s.URL+"/lib/.git", plumbing.NewHash(strings.Repeat("12", 20))))
			require.Equal(t, fault.Refused, fault.KindOf(err))
			require.ErrorContains(t, err, "submodule lib (commit 1212121 of "+s.URL+"/lib/.git)")
			require.ErrorContains(t, err, "does not have this commit")
			require.Contains(t, fault.HintOf(err), "submodules: empty")
		})
	}
}

func TestHTTPAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request) bool
		kind   fault.Kind
		why    string
	}{
		{"not there", func(rw http.ResponseWriter, r *http.Request) bool { http.NotFound(rw, r); return true }, fault.Refused, "repository not found"},
		{"wants a password", func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(401); return true }, fault.Refused, "rejected the user and password"},
		{"broken", func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(502); return true }, fault.Busy, "HTTP 502"},
		{"dumb", func(rw http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprintf(rw, "%s\trefs/heads/master\n", strings.Repeat("12", 20))
			return true
		}, fault.Refused, "dumb"},
		{"redirects for ever", func(rw http.ResponseWriter, r *http.Request) bool {
			http.Redirect(rw, r, r.URL.String(), http.StatusFound)
			return true
		}, fault.Busy, "redirects more than"},
		{"redirects to a file", func(rw http.ResponseWriter, r *http.Request) bool {
			http.Redirect(rw, r, "file:///etc/passwd", http.StatusFound)
			return true
		}, fault.Busy, "unsafe"},
		{"redirects a fetch", func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			http.Redirect(rw, r, "/other", http.StatusTemporaryRedirect)
			return true
		}, fault.Busy, "only the first one may be redirected"},
		{"hangs up", func(rw http.ResponseWriter, _ *http.Request) bool { panic(http.ErrAbortHandler) }, fault.Busy, "EOF"},
		{"cuts the pack", func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			rw.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			_, _ = io.WriteString(rw, "000dpackfile\n000d\x01PACK\x00\x00\x00\x02")
			return true
		}, fault.Busy, ""},
		{"sends nonsense", func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			rw.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			_, _ = io.WriteString(rw, "000dpackfile\n0019\x01nonsense, and no pack0000")
			return true
		}, fault.Refused, "the received pack"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.repo("lib")
			tip := w.commit("lib", "tip", "tip\n")
			s := w.smart(c.answer)
			_, err := w.resolve(w.link("app", "lib", strings.Replace(s.URL, "http://", "http://marie:hunter2@", 1)+"/lib/.git", tip))
			require.Error(t, err)
			require.Equal(t, c.kind, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, c.why)
			require.NotContains(t, err.Error()+fault.HintOf(err)+strings.Join(w.said, ""), "hunter2")
			require.Contains(t, w.hid, "hunter2")
			left, gerr := filepath.Glob(filepath.Join(w.res.Dir, "*", "objects", "incoming-*"))
			require.NoError(t, gerr)
			require.Empty(t, left)
		})
	}
}

// TestPasswordsStayWithTheirHost: a server that redirects us does not cause the password to be sent to others.
func TestPasswordsStayWithTheirHost(t *testing.T) {
	w := newWorld(t)
	w.repo("lib")
	tip := w.commit("lib", "tip", "tip\n")
	var mu sync.Mutex
	var seen []string
	there := w.smart(func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Get("Authorization"))
		return false
	})
	_, port, err := net.SplitHostPort(there.Listener.Addr().String())
	require.NoError(t, err)
	first := w.smart(func(rw http.ResponseWriter, r *http.Request) bool {
		user, pass, _ := r.BasicAuth()
		if user != "marie" || pass != "hunter2" {
			rw.WriteHeader(401)
			return true
		}
		http.Redirect(rw, r, "http://localhost:"+port+r.URL.String(), http.StatusFound)
		return true
	})
	set, err := w.resolve(w.link("app", "lib", strings.Replace(first.URL, "http://", "http://marie:hunter2@", 1)+"/lib/.git", tip))
	require.NoError(t, err)
	w.here(set, 0, tip, "tip")
	require.Len(t, seen, 2)
	require.Equal(t, []string{"", ""}, seen)
	for _, name := range []string{"config", "shallow"} {
		b, err := os.ReadFile(filepath.Join(set.Modules[0].Repo, name))
		require.NoError(t, err)
		require.NotContains(t, string(b)+set.Modules[0].Repo, "hunter2")
	}

	// A list of hosts also applies to targets of redirects.
	w.res.Hosts = []string{"127.0.0.1"}
	next := w.commit("lib", "next", "next\n")
	_, err = w.resolve(w.link("app", "lib", strings.Replace(first.URL, "http://", "http://marie:hunter2@", 1)+"/lib/.git", next))
	require.ErrorContains(t, err, "this server does not fetch from localhost")
	require.Equal(t, fault.Refused, fault.KindOf(err))
}

// TestSilentServer: a server that sends nothing is abandoned at the deadline.
func TestSilentServer(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	w.res.Timeout = time.Second
	for _, url := range []string{"http://%s/x", "git://%s/x"} {
		_, err = w.resolve(w.link("app", "lib", fmt.Sprintf(url, l.Addr()), plumbing.NewHash(strings.Repeat("12", 20))))
		require.Equal(t, fault.Busy, fault.KindOf(err))
		require.ErrorContains(t, err, "not complete within 1s")
		require.Contains(t, fault.HintOf(err), "submodules.timeout")
	}
	// Nobody listens.
	require.NoError(t, l.Close())
	_, err = w.resolve(w.link("app", "lib", fmt.Sprintf("git://%s/x", l.Addr()), plumbing.NewHash(strings.Repeat("12", 20))))
	require.Equal(t, fault.Busy, fault.KindOf(err))
	require.ErrorContains(t, err, "refused")
}

func TestFetchOverGit(t *testing.T) {
	w := newWorld(t)
	w.repo("lib")
	tip := w.commit("lib", "tip", "tip\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			cmd := exec.Command("git", "daemon", "--inetd", "--export-all", "--base-path="+w.dir)
			cmd.Env = append(os.Environ(), "HOME="+w.dir, "GIT_CONFIG_NOSYSTEM=1")
			cmd.Stdin, cmd.Stdout = c, c
			_ = cmd.Run()
			_ = c.Close()
		}
	}()
	set, err := w.resolve(w.link("app", "lib", "git://"+l.Addr().String()+"/lib/.git", tip))
	require.NoError(t, err)
	w.here(set, 0, tip, "tip")
}

// TestHostileObjects: received objects are checked like those of a push.
func TestHostileObjects(t *testing.T) {
	w := newWorld(t)
	w.repo("lib")
	blob := w.git("lib", "rev-parse", "HEAD:file")
	cmd := exec.Command("git", "-C", filepath.Join(w.dir, "lib"), "mktree")
	cmd.Stdin = strings.NewReader("100644 blob " + blob + "\t.GIT\n")
	out, err := cmd.Output()
	require.NoError(t, err)
	bad := plumbing.NewHash(w.git("lib", "commit-tree", "-m", "bad", strings.TrimSpace(string(out))))
	w.git("lib", "update-ref", "refs/heads/bad", bad.String())
	s := w.smart(nil)
	_, err = w.resolve(w.link("app", "lib", s.URL+"/lib/.git", bad))
	require.Equal(t, fault.Refused, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "hasDotgit")

	w.res.Limits.PackBytes = 40
	_, err = w.resolve(w.link("app", "lib", s.URL+"/lib/.git", plumbing.NewHash(w.git("lib", "rev-parse", "master"))))
	require.Equal(t, fault.Refused, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "pack is longer than 40 bytes")
}

func TestNested(t *testing.T) {
	w := newWorld(t)
	s := w.smart(nil)
	w.repo("r0")
	at := w.commit("r0", "tip", "0\n")
	for i := 1; i <= 10; i++ {
		w.repo(fmt.Sprint("r", i))
		at = w.link(fmt.Sprint("r", i), "sub", "../../r"+fmt.Sprint(i-1)+"/.git", at)
	}
	_, err := w.resolve(w.link("app", "lib", s.URL+"/r10/.git", at))
	require.ErrorContains(t, err, "more than 10 submodules inside each other")
	require.ErrorContains(t, err, "submodule lib/sub/sub/")
	set, err := w.resolve(w.link("app", "lib", s.URL+"/r9/.git", plumbing.NewHash(w.git("r9", "rev-parse", "HEAD"))))
	require.NoError(t, err)
	m := set.Modules
	for range 9 {
		require.Len(t, m, 1)
		m = m[0].Modules
	}

	// A repository that has itself as a submodule, in an older commit: that ends.
	w.repo("self")
	first := plumbing.NewHash(w.git("self", "rev-parse", "HEAD"))
	second := w.link("self", "me", "../.git", first)
	third := w.link("self", "me", "./../.git", second)
	set, err = w.resolve(w.link("app", "lib", s.URL+"/self/.git", third))
	require.NoError(t, err)
	for _, m := range set.Modules {
		if m.Path == "lib" {
			require.Equal(t, first, m.Modules[0].Modules[0].Commit)
		}
	}

	// Eight in each of four levels are 4,680.
	w.repo("b0")
	at = w.commit("b0", "tip", "0\n")
	for i := 1; i <= 4; i++ {
		name := fmt.Sprint("b", i)
		w.repo(name)
		at = w.link(name, "s0", "../../b"+fmt.Sprint(i-1)+"/.git", at, "s1", "s2", "s3", "s4", "s5", "s6", "s7")
	}
	_, err = w.resolve(w.link("app", "lib", s.URL+"/b4/.git", at))
	require.ErrorContains(t, err, "more than 1000 submodules")
}

// TestEntries: entries without a source, or with update = none, are ignored; entries that attack the machine are
// refused.
func TestEntries(t *testing.T) {
	w := newWorld(t)
	nowhere := plumbing.NewHash(strings.Repeat("12", 20))
	w.git("app", "update-index", "--add", "--cacheinfo", "160000,"+nowhere.String()+",no/entry")
	w.link("app", "quiet", "https://example.org/x", nowhere)
	w.git("app", "config", "-f", ".gitmodules", "submodule.quiet.update", "none")
	w.git("app", "add", ".gitmodules")
	w.git("app", "commit", "-qm", "none")
	set, err := w.resolve(plumbing.NewHash(w.git("app", "rev-parse", "HEAD")))
	require.NoError(t, err)
	require.Empty(t, set.Modules)
	for url, why := range map[string]string{
		"file:///srv": "local directories", "/srv": "local directories", "ext::sh -c id": "git-remote-ext", "../nothing": "does not name a project on this server",
	} {
		_, err := w.resolve(w.link("app", "bad", url, nowhere))
		require.Equal(t, fault.Refused, fault.KindOf(err), url)
		require.ErrorContains(t, err, "submodule bad (commit 1212121", url)
		require.ErrorContains(t, err, why, url)
	}
	w.res.Offline = true
	set, err = w.resolve(plumbing.NewHash(w.git("app", "rev-parse", "HEAD")))
	require.NoError(t, err)
	require.Empty(t, set.Modules)
	require.Empty(t, w.said)
}

// TestCrash: what an interrupted fetch left is removed, and fetched again.
func TestCrash(t *testing.T) {
	w := newWorld(t)
	w.repo("lib")
	tip := w.commit("lib", "tip", "tip\n")
	s := w.smart(nil)
	top := w.link("app", "lib", s.URL+"/lib/.git", tip)
	set, err := w.resolve(top)
	require.NoError(t, err)
	repo := set.Modules[0].Repo
	require.NoError(t, os.MkdirAll(filepath.Join(repo, "objects", "incoming-dead", "pack"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(repo, "objects", "incoming-dead", "pack", "tmp_pack_1"), []byte("PACK"), 0o600))
	// As if the machine had stopped before the last step.
	require.NoError(t, os.Remove(filepath.Join(repo, "refs", "corpus", "commits", tip.String())))
	w.said = nil
	set, err = w.resolve(top)
	require.NoError(t, err)
	require.Len(t, w.said, 1)
	w.here(set, 0, tip, "tip")
}

// sshd is a server that runs git-upload-pack for one key.
func (w *world) sshd(host ssh.Signer, allowed ssh.PublicKey) string {
	conf := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(k.Marshal(), allowed.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	conf.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serveSSH(c, conf)
		}
	}()
	return l.Addr().String()
}

func (w *world) serveSSH(c net.Conn, conf *ssh.ServerConfig) {
	defer c.Close()
	_, chans, reqs, err := ssh.NewServerConn(c, conf)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(reqs)
	for nc := range chans {
		ch, in, err := nc.Accept()
		if err != nil {
			return
		}
		env := append(os.Environ(), "HOME="+w.dir, "GIT_CONFIG_NOSYSTEM=1")
		for r := range in {
			switch r.Type {
			case "env":
				var kv struct{ K, V string }
				_ = ssh.Unmarshal(r.Payload, &kv)
				env = append(env, kv.K+"="+kv.V)
				_ = r.Reply(true, nil)
			case "exec":
				var line struct{ S string }
				_ = ssh.Unmarshal(r.Payload, &line)
				_ = r.Reply(true, nil)
				cmd := exec.Command("sh", "-c", line.S)
				cmd.Env, cmd.Stdout, cmd.Stderr = env, ch, ch.Stderr()
				stdin, _ := cmd.StdinPipe()
				go func() { _, _ = io.Copy(stdin, ch); _ = stdin.Close() }()
				_ = cmd.Run()
				_, _ = ch.SendRequest("exit-status", false, []byte{0, 0, 0, 0})
				_ = ch.Close()
			}
		}
	}
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	s, err := ssh.NewSignerFromKey(priv)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(priv, "")
	require.NoError(t, err)
	return s, pem.EncodeToMemory(block)
}

func TestFetchOverSSH(t *testing.T) {
	w := newWorld(t)
	w.repo("it's lib")
	tip := w.commit("it's lib", "tip", "tip\n")
	host, _ := newKey(t)
	key, private := newKey(t)
	addr := w.sshd(host, key.PublicKey())
	top := w.link("app", "lib", "ssh://git@"+addr+w.dir+"/it's lib", tip)

	_, err := w.resolve(top)
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "no key to log in with")

	w.res.Home = filepath.Join(w.dir, "home")
	require.NoError(t, os.MkdirAll(filepath.Join(w.res.Home, ".ssh"), 0o700))
	_, err = w.resolve(top)
	require.ErrorContains(t, err, "no key to log in with")
	require.Contains(t, fault.HintOf(err), "id_ed25519")

	require.NoError(t, os.WriteFile(filepath.Join(w.res.Home, ".ssh", "id_ed25519"), private, 0o600))
	_, err = w.resolve(top)
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "the host key of "+addr+" is unknown")
	require.Contains(t, fault.HintOf(err), "ssh-keyscan")

	hosts := filepath.Join(w.res.Home, ".ssh", "known_hosts")
	other, _ := newKey(t)
	require.NoError(t, os.WriteFile(hosts, []byte(knownhosts.Line([]string{addr}, other.PublicKey())+"\n"), 0o600))
	_, err = w.resolve(top)
	require.ErrorContains(t, err, "has changed")

	require.NoError(t, os.WriteFile(hosts, []byte(knownhosts.Line([]string{addr}, host.PublicKey())+"\n"), 0o600))
	set, err := w.resolve(top)
	require.NoError(t, err)
	w.here(set, 0, tip, "tip")

	_, stranger := newKey(t)
	require.NoError(t, os.WriteFile(filepath.Join(w.res.Home, ".ssh", "id_ed25519"), stranger, 0o600))
	next := w.commit("it's lib", "next", "next\n")
	_, err = w.resolve(w.link("app", "lib", "ssh://git@"+addr+w.dir+"/it's lib", next))
	require.ErrorContains(t, err, "rejected the key")

	require.NoError(t, os.WriteFile(filepath.Join(w.res.Home, ".ssh", "id_ed25519"), private, 0o600))
	_, err = w.resolve(w.link("app", "lib", "ssh://git@"+addr+w.dir+"/nothing", next))
	require.ErrorContains(t, err, "the server says: fatal: ")
}

// The attacks: a submodule or a recipe whose URL leads to a service of the server's own machine, or to the metadata service of a cloud, directly, by a name, or by a redirect of a host that may be contacted.
func TestAddressesOfThisMachine(t *testing.T) {
	w := newWorld(t)
	w.res.Hosts = nil
	var asked atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	_, port, err := net.SplitHostPort(inside.Listener.Addr().String())
	require.NoError(t, err)
	outside := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:"+port+"/x/info/refs", http.StatusFound))
	defer outside.Close()
	named := strings.Replace(outside.URL, "127.0.0.1", "localhost", 1) + "/x"
	id := plumbing.NewHash(strings.Repeat("12", 20))
	for _, c := range []struct {
		url   string
		hosts []string
	}{
		{"http://127.0.0.1:" + port + "/x", nil}, {"http://localhost:" + port + "/x", nil}, {"http://[::ffff:127.0.0.1]:" + port + "/x", nil}, {"http://0.0.0.0:" + port + "/x", nil},
		{"git://127.0.0.1:" + port + "/x", nil}, {"http://127.0.0.1:" + port + "/x", []string{"*"}}, {"http://169.254.169.254/x", nil}, {named, []string{"*", "localhost"}},
	} {
		w.res.Hosts = c.hosts
		_, err := w.resolve(w.link("app", "lib", c.url, id))
		require.ErrorContains(t, err, "is an address of this machine or of its link", c.url)
		require.Equal(t, fault.Refused, fault.KindOf(err), c.url)
		require.Contains(t, fault.HintOf(err), "submodules.hosts", c.url)
	}
	require.Zero(t, asked.Load())
}
