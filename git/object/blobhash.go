package object

import (
	"crypto/sha1"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
)

// BlobHash names a local file's content. Nobody else's bytes are trusted by it, so plain SHA-1 will do.
func BlobHash(data []byte) (h plumbing.Hash) {
	s := sha1.New()
	s.Write(BlobHeader(int64(len(data))))
	s.Write(data)
	s.Sum(h[:0])
	return h
}

// BlobHeader returns what comes before a blob of size bytes when its name is computed.
func BlobHeader(size int64) []byte {
	return append(strconv.AppendInt([]byte("blob "), size, 10), 0)
}
