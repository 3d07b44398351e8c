package mirror

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/git/upload"
	"corpus-git/internal/fault"
	"corpus-git/internal/sleep"
)

// maxRequest limits the request of a client of git, after decompression, in bytes: a copy has one ref, and a client names a few thousand commits that it has.
// maxFetches is how many are served at once, each in memory, and requestTime how long a request may take to arrive.
// moments is how often, and moment at which interval, a copy is looked at again that does not show what is pinned.
const (
	maxRequest  = 4 << 20
	maxFetches  = 32
	requestTime = time.Minute
	moments     = 20
	moment      = 50 * time.Millisecond
)

const (
	gitPrefix    = "/git/"
	filesPrefix  = "/files/"
	folderPrefix = "/folders/"
	// packagesPrefix is followed by the path of an entry, and by dists/ or pool/.
	packagesPrefix = "/packages/"
)

// Handler serves what the list has and the lock pins, read-only:
//
//	/git/PATH.git      git's smart protocol (gitprotocol-http(5)), fetching only
//	/files/PATH        a file, with its SHA-256 as ETag
//	/packages/PATH/    an archive of Debian packages
//	/folders/PATH/     a folder of this machine; links that lead out of it are not followed
//	/repos.lock        the lock
//
// The lock is read again for each request, so that a sync takes effect at once. It has no users: anybody who reaches the address may read.
func (m *Mirror) Handler(log zerolog.Logger) http.Handler {
	s := &server{Mirror: m, log: log, sums: map[string]verified{}, fetches: make(chan struct{}, maxFetches)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+gitPrefix, s.advertise)
	mux.HandleFunc("POST "+gitPrefix, s.upload)
	mux.HandleFunc("GET "+filesPrefix, s.file)
	mux.HandleFunc("GET "+folderPrefix, s.folder)
	mux.HandleFunc("GET "+packagesPrefix, s.archive)
	mux.HandleFunc("GET /repos.lock", s.pins)
	return mux
}

type server struct {
	*Mirror
	log zerolog.Logger
	// fetches has a place for each fetch that is served.
	fetches chan struct{}

	read sync.Mutex
	sums map[string]verified
}

// verified is a file as it was when its SHA-256 was computed: its inode, its size, and the time of its last change of any kind, which no program can set.
type verified struct {
	inode   uint64
	size    int64
	changed syscall.Timespec
	sum     string
}

// fail responds with an error; an internal error is only logged.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, "not found", http.StatusNotFound)
	case fault.KindOf(err) == fault.Usage:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case fault.KindOf(err) == fault.Refused:
		http.Error(w, err.Error(), http.StatusForbidden)
	default:
		s.log.Error().Err(err).Str("path", r.URL.Path).Msg("request")
		http.Error(w, "the mirror can't serve this; its log says why", http.StatusInternalServerError)
	}
}

// repository opens the repository that a path names, and returns it with the rest of the path.
func (s *server) repository(r *http.Request) (db *store.DB, rs *refs.Store, rest string, err error) {
	path, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, gitPrefix), ".git/")
	if !ok {
		return nil, nil, "", fs.ErrNotExist
	}
	dir := s.repositoryDir(path)
	if err := s.pinned(r.Context(), path, dir); err != nil {
		return nil, nil, "", err
	}
	db, err = store.Open(dir, store.Options{KeepQuarantine: func(string) bool { return true }}) // a sync may be using it
	return db, &refs.Store{Dir: dir}, rest, err
}

// pinned reports, as an error, a copy that does not show what is pinned. A sync that renews a pin moves the refs a moment before it writes the lock.
func (s *server) pinned(ctx context.Context, path, dir string) error {
	for left := moments; ; left-- {
		lock, err := ReadLock(s.LockFile)
		if err != nil {
			return err
		}
		old, ok := lock.Repositories[path]
		if !ok {
			return fs.ErrNotExist
		}
		if err = old.shows(dir); err == nil || left == 0 {
			return err
		}
		if err := sleep.For(ctx, moment); err != nil {
			return err
		}
	}
}

const service = "git-upload-pack"

// advertise responds to the first request of a fetch.
func (s *server) advertise(w http.ResponseWriter, r *http.Request) {
	db, rs, rest, err := s.repository(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer db.Close()
	if rest != "info/refs" {
		s.fail(w, r, fs.ErrNotExist)
		return
	}
	if got := r.URL.Query().Get("service"); got != service {
		s.fail(w, r, fault.New(fault.Refused, "", "a mirror is read with git's smart protocol only"))
		return
	}
	version := upload.Version(r.Header.Get("Git-Protocol"))
	var b bytes.Buffer
	if version != 2 {
		line := "# service=" + service + "\n"
		fmt.Fprintf(&b, "%04x%s0000", len(line)+4, line)
	}
	if err := upload.Serve(r.Context(), upload.Request{Objects: db, Refs: rs, Version: version}, strings.NewReader(""), &b); err != nil {
		s.fail(w, r, err)
		return
	}
	header(w, "application/x-"+service+"-advertisement")
	_, _ = w.Write(b.Bytes())
}

func header(w http.ResponseWriter, kind string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
}

// upload responds to one request of a fetch.
func (s *server) upload(w http.ResponseWriter, r *http.Request) {
	db, rs, rest, err := s.repository(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer db.Close()
	if rest != service {
		s.fail(w, r, fault.New(fault.Refused, "", "a mirror takes no pushes"))
		return
	}
	select {
	case s.fetches <- struct{}{}:
		defer func() { <-s.fetches }()
	case <-r.Context().Done():
		return
	}
	// If the connection has no deadlines, as in a test of the handler alone, nobody waits.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTime))
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(r.Body); err != nil {
			s.fail(w, r, fault.New(fault.Usage, "", "%w", err))
			return
		}
	}
	text, err := io.ReadAll(io.LimitReader(body, maxRequest+1))
	if err == nil && len(text) > maxRequest {
		err = fmt.Errorf("the request is longer than %d bytes", maxRequest)
	}
	if err != nil {
		s.fail(w, r, fault.New(fault.Usage, "", "%w", err))
		return
	}
	header(w, "application/x-"+service+"-result")
	req := upload.Request{Objects: db, Refs: rs, Version: upload.Version(r.Header.Get("Git-Protocol")), Stateless: true}
	if err := upload.Serve(r.Context(), req, bytes.NewReader(text), w); err != nil && !errors.Is(err, context.Canceled) {
		s.log.Warn().Err(err).Str("path", r.URL.Path).Msg("fetch")
	}
}

// file serves a file whose bytes are those that are pinned.
func (s *server) file(w http.ResponseWriter, r *http.Request) {
	p := strings.TrimPrefix(r.URL.Path, filesPrefix)
	lock, err := ReadLock(s.LockFile)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	old, ok := lock.Files[p]
	if !ok {
		s.fail(w, r, fs.ErrNotExist)
		return
	}
	f, err := os.Open(s.filePath(p))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil {
		err = s.same(f, st, old)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("ETag", `"`+old.SHA256+`"`)
	http.ServeContent(w, r, p, st.ModTime(), f)
}

// same reports, as an error, a file that is not what is pinned. It is read once, and again if it was changed.
func (s *server) same(f *os.File, st fs.FileInfo, old LockedFile) error {
	s.read.Lock()
	defer s.read.Unlock()
	now := verified{size: st.Size()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		now.inode, now.changed = sys.Ino, sys.Ctim
	}
	v := s.sums[f.Name()]
	if now.sum = v.sum; v != now || v.sum == "" {
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		now.sum = hex.EncodeToString(h.Sum(nil))
		s.sums[f.Name()] = now
	}
	if now.sum != old.SHA256 {
		return fmt.Errorf("%s is damaged: it has the SHA-256 %s, and is pinned to %s", f.Name(), now.sum, old.SHA256)
	}
	return nil
}

// folder serves a file or a listing of a folder of the list.
func (s *server) folder(w http.ResponseWriter, r *http.Request) {
	p := strings.TrimPrefix(r.URL.Path, folderPrefix)
	for _, f := range s.List.Folders {
		if p != f.Path && !strings.HasPrefix(p, f.Path+"/") {
			continue
		}
		s.serveFolder(w, r, folderPrefix+f.Path, f.From)
		return
	}
	s.fail(w, r, fs.ErrNotExist)
}

// serveFolder serves what is below a folder, and nothing to which links lead out of it.
func (s *server) serveFolder(w http.ResponseWriter, r *http.Request, prefix, dir string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer root.Close()
	http.StripPrefix(prefix, http.FileServerFS(root.FS())).ServeHTTP(w, r)
}

func (s *server) pins(w http.ResponseWriter, r *http.Request) {
	text, err := os.ReadFile(s.LockFile)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	header(w, "application/json")
	_, _ = w.Write(text)
}
