package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"corpus-git/internal/diskfull"
	"corpus-git/internal/fault"
	"corpus-git/internal/quantity"
	"corpus-git/internal/vfs"
)

func (m *Mirror) filePath(p string) string {
	return filepath.Join(m.Dir, "files", filepath.FromSlash(p))
}

// file copies one file.
func (m *Mirror) file(ctx context.Context, f File, renew bool) (Outcome, error) {
	out := Outcome{Kind: "files", Path: f.Path, Change: unchanged}
	m.mu.Lock()
	old, pinned := m.lock.Files[f.Path]
	m.mu.Unlock()
	pinned = pinned && old.URL == shown(f.URL)
	want := f.SHA256
	switch {
	case pinned && !renew && want != "" && want != old.SHA256:
		return out, fault.New(fault.Refused, "", "the list has the SHA-256 %s…, and it is pinned to %s…", want[:12], old.SHA256[:12]).
			WithHint("to take the list's:  corpus-git mirror sync --update %s", f.Path)
	case pinned && !renew:
		want = old.SHA256
	}
	name := m.filePath(f.Path)
	if want != "" {
		if sum, size, err := sumOf(name); err == nil && sum == want {
			out.At = sum
			if pinned && old.SHA256 == sum {
				return out, nil
			}
			out.Change = copied
			return out, m.pin(func(l *Lock) { l.Files[f.Path] = LockedFile{shown(f.URL), sum, size} })
		}
	}
	sum, size, err := m.download(ctx, f, name+".part", want)
	if err != nil {
		return out, err
	}
	if err := vfs.RenameDurable(vfs.OS{}, name+".part", name); err != nil {
		return out, err
	}
	out.At = sum
	switch {
	case pinned && old.SHA256 == sum:
		if renew {
			return out, nil
		}
		out.Change = copied // it was lost or damaged here
		return out, nil
	case pinned:
		out.Change = updated
	default:
		out.Change = copied
	}
	return out, m.pin(func(l *Lock) { l.Files[f.Path] = LockedFile{shown(f.URL), sum, size} })
}

// sumOf returns the SHA-256 of a file, and its size.
func sumOf(name string) (string, int64, error) {
	f, err := os.Open(name) //nolint:gosec // below the mirror's folder
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// download fetches a file into part, from where an earlier one ended, and makes it durable. With want, the result is the content that want
// names, or an error.
func (m *Mirror) download(ctx context.Context, f File, part, want string) (sum string, size int64, err error) {
	if err := vfs.MkdirAll(vfs.OS{}, filepath.Dir(part), 0o755); err != nil {
		return "", 0, err
	}
	if want == "" {
		// Unknown content may have changed since then: it is fetched whole.
		if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", 0, err
		}
	}
	had, err := os.Stat(part)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", 0, err
	}
	if err := m.get(ctx, f, part, want != ""); err != nil {
		return "", 0, err
	}
	if sum, size, err = sumOf(part); err != nil {
		return "", 0, err
	}
	if want != "" && sum != want && had != nil && had.Size() > 0 {
		// What an earlier attempt left may be of another version, or damaged: only a whole file is a reason to refuse.
		if err := os.Remove(part); err != nil {
			return "", 0, err
		}
		return m.download(ctx, f, part, want)
	}
	if want != "" && sum != want {
		if err := os.Remove(part); err != nil {
			return "", 0, err
		}
		return "", 0, fault.New(fault.Refused, "", "what came has the SHA-256 %s…, and %s… is demanded", sum[:12], want[:12]).
			WithHint("look at the file there; where it was replaced on purpose:  corpus-git mirror sync --update %s", f.Path)
	}
	return sum, size, nil
}

// maxRedirects is how often a server may redirect a request.
const maxRedirects = 10

// redirect refuses to continue without TLS if the list has an https URL: what is fetched first is pinned.
func redirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return fmt.Errorf("the server redirects more than %d times", maxRedirects)
	case via[0].URL.Scheme == "https" && req.URL.Scheme != "https":
		return errors.New("the server redirects from https to an address that is not")
	}
	return nil
}

// get fetches a file into part, after what that already has, and makes it durable; what is larger than the limit is removed. Source: RFC 9110, section 14.
// resumes reports that a later call continues where this one ends: what is there then is kept.
func (m *Mirror) get(ctx context.Context, f File, part string, resumes bool) (err error) {
	w, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644) //nolint:gosec // below the mirror's folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	st, err := w.Stat()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", m.Copier.Agent)
	req.Header.Set("Accept-Encoding", "identity")
	if st.Size() > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(st.Size(), 10)+"-")
	}
	client := *m.HTTP
	client.CheckRedirect = redirect
	res, err := client.Do(req)
	if err != nil {
		return fault.New(fault.Busy, "", "%s: %w", shown(f.URL), requestError(err))
	}
	defer res.Body.Close()
	had := st.Size()
	switch {
	case res.StatusCode == http.StatusPartialContent && strings.HasPrefix(res.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", had)):
	case res.StatusCode == http.StatusOK, res.StatusCode == http.StatusPartialContent:
		if err := w.Truncate(0); err != nil {
			return err
		}
		had = 0
		if res.StatusCode == http.StatusPartialContent {
			return fault.New(fault.Busy, "", "the server sent another part than the one that was asked for; the next sync fetches the file whole")
		}
	case res.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return nil // it may be complete: its checksum decides
	default:
		return fault.New(fault.Refused, "", "the server answers %s", res.Status)
	}
	large := fault.New(fault.Refused, "", "it is larger than %s", quantity.FormatSize(f.max)).WithHint("where that is right, give it a larger limit in the list:  max_size: %s", quantity.FormatSize(2*f.max))
	if had+max(res.ContentLength, 0) > f.max {
		return errors.Join(large, os.Remove(part))
	}
	n, err := io.Copy(w, io.LimitReader(res.Body, f.max-had+1))
	if err == nil && had+n > f.max {
		return errors.Join(large, os.Remove(part))
	}
	if err == nil && res.ContentLength >= 0 && n != res.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = w.Sync()
	}
	switch {
	case err == nil:
		return nil
	case diskfull.Is(err):
		// A full disk has no room for the beginning of a file.
		return errors.Join(fault.New(fault.Busy, "", "the disk is full after %d bytes of it: %w", had+n, err).WithHint("the next sync fetches it again, once there is room"), os.Remove(part))
	case !resumes:
		return errors.Join(fault.New(fault.Busy, "", "the transfer ended after %d bytes: %w", n, err).WithHint("the next sync fetches it again"), os.Remove(part))
	}
	return fault.New(fault.Busy, "", "the transfer ended after %d bytes: %w", n, err).WithHint("the next sync goes on there")
}
