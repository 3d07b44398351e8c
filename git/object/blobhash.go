package object

import (
	"crypto/sha1"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
)

// BlobHash returns the name of a local file's content. Nobody else's bytes are trusted because of it, so plain SHA-1 is sufficient.
func BlobHash(data []byte) (h plumbing.Hash) {
	s := sha1.New()
	s.Write(BlobHeader(int64(len(data))))
	s.Write(data)
	s.Sum(h[:0])
	return h
}

// BlobHeader returns what precedes a blob of size bytes when its name is computed.
func BlobHeader(size int64) []byte {
	return append(strconv.AppendInt([]byte("blob "), size, 10), 0)
}
