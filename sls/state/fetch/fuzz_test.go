package fetch_test

import (
	"context"
	"encoding/hex"
	"strings"
	"testing"
	"testing/fstest"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
)

// FuzzSourceHash: a source_hash, and a file of hashes, which another server writes, is read without a panic; what is read is a
// hash of a kind that is known and as long as its kind's, and data that does not hash to it is refused.
func FuzzSourceHash(f *testing.F) {
	data := []byte("content\n")
	for _, kind := range []string{"md5", "sha1", "sha224", "sha256", "sha384", "sha512"} {
		h := fetch.Hash(kind, data)
		f.Add(kind+"="+h, h+" *f.txt\n")
		f.Add(h, "SHA256 (f.txt) = "+h+"\r\n\n/tmp/f.txt\t"+h)
	}
	f.Add("sha256:x", "a/f.txt  \xff\n")
	f.Add(" MD5 = d41d8cd98f00b204e9800998ecf8427e", "f.txt")
	f.Fuzz(func(t *testing.T, text, file string) {
		if text = strings.TrimSpace(text); fetch.Scheme(text) != "" || strings.HasPrefix(text, "/") {
			text = "x" + hex.EncodeToString([]byte(text)) // nothing is read that the input names
		}
		for _, source := range []string{text, "salt://SUMS"} {
			c := &core.Call{Env: &core.Env{Host: host.New(execx.OS{}), Cache: map[string]any{}, Roots: fileroot.Roots{{FS: fstest.MapFS{"SUMS": {Data: []byte(file)}}}}},
				Ctx: context.Background(), Name: "/tmp/f.txt", Args: py.NewDict("name", "/tmp/f.txt", "source_hash_name", "f.txt")}
			sum, err := fetch.WantedSum(c, "https://x/a/f.txt", source)
			if err != nil {
				continue
			}
			of := fetch.Hash(sum.Kind, data)
			if b, err := hex.DecodeString(sum.Hex); err != nil || len(of) != len(sum.Hex) || hex.EncodeToString(b) != sum.Hex {
				t.Fatalf("%q: %v", source, sum)
			}
			if got := sum.Check(data, c.Name); (got == nil) != (of == sum.Hex) {
				t.Fatalf("%v: %v", sum, got)
			}
		}
	})
}
