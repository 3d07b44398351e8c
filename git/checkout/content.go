package checkout

import (
	"crypto/sha1"
	"io"
	"os"

	"corpus-git/git/convert"
	"corpus-git/git/object"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// content is what a path of the working copy holds: its hash as a blob, and its bytes if a checkout may have converted them.
type content struct {
	raw  plumbing.Hash
	data []byte
}

// maxConverted is the largest file that is converted; larger ones are compared and written as they are.
const maxConverted = 256 << 20

// readContent reads a file or a link; whole keeps the bytes of a file.
func readContent(dir int, name string, st *unix.Stat_t, whole bool) (c content, err error) {
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		to, err := readlinkat(dir, name, st.Size)
		return content{raw: plumbing.ComputeHash(plumbing.BlobObject, []byte(to))}, err
	}
	if whole && st.Size <= maxConverted {
		c.data, _, err = readFileAt(dir, name, maxConverted)
		c.raw = object.BlobHash(c.data)
		return c, err
	}
	c.raw, err = hashFile(dir, name)
	return c, err
}

// is reports whether a checkout of the blob oid with this conversion results in these bytes.
func (c content) is(oid plumbing.Hash, how convert.Conversion) bool {
	if how == convert.AsIs || c.data == nil {
		return c.raw == oid
	}
	return how.IsFrom(oid, c.data)
}

// hashFile is blobHash of a regular file; the zero hash for anything else, and for a file that changes size.
func hashFile(dir int, name string) (h plumbing.Hash, err error) {
	fd, err := openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return h, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return h, err
	}
	s := sha1.New()
	s.Write(object.BlobHeader(fi.Size()))
	buf := make([]byte, min(fi.Size()+1, 256<<10))
	n, err := io.CopyBuffer(struct{ io.Writer }{s}, struct{ io.Reader }{f}, buf)
	if err != nil || n != fi.Size() {
		return h, err
	}
	s.Sum(h[:0])
	return h, nil
}
