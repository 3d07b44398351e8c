package receive

import (
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/project"
)

// maxHeadFile limits how much is read of a file below a working copy's .git.
const maxHeadFile = 4 << 20

// LiveHead returns the commit that is checked out in a working copy, "" if there is none; see liveHead.
func LiveHead(dir string) project.Commit {
	if h := liveHead(dir); !h.IsZero() {
		return project.Commit(h.String())
	}
	return ""
}

// liveHead returns the commit checked out in a working copy according to its .git, the zero hash if there is none. The project's user owns
// the folder: nothing outside it is read, and nothing in it can block the reader.
func liveHead(dir string) plumbing.Hash {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return plumbing.ZeroHash
	}
	defer root.Close()
	read := func(name string) string {
		f, err := root.OpenFile(".git/"+name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return ""
		}
		defer f.Close()
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			return ""
		}
		b, err := io.ReadAll(io.LimitReader(f, maxHeadFile))
		if err != nil {
			return ""
		}
		return string(b)
	}
	text := strings.TrimSpace(read("HEAD"))
	if ref, ok := strings.CutPrefix(text, "ref:"); ok {
		ref = strings.TrimSpace(ref)
		if text = strings.TrimSpace(read(ref)); text == "" {
			for line := range strings.Lines(read("packed-refs")) {
				if hash, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == ref {
					text = hash
				}
			}
		}
	}
	if !plumbing.IsHash(text) {
		return plumbing.ZeroHash
	}
	return plumbing.NewHash(text)
}
