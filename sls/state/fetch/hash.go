package fetch

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"path"
	"regexp"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// Sum is the expected hash of a source.
type Sum struct{ Kind, Hex string }

// hashKinds are the hashes that Salt supports, with the lengths of their hexadecimal form, longest first.
// Source: Salt, salt/modules/file.py, HASHES.
var hashKinds = [...]struct {
	kind string
	len  int
	make func() hash.Hash
}{
	{"sha512", 128, sha512.New}, {"sha384", 96, sha512.New384}, {"sha256", 64, sha256.New},
	{"sha224", 56, sha256.New224}, {"sha1", 40, sha1.New}, {"md5", 32, md5.New},
}

func kindOfLength(n int) string {
	for _, k := range hashKinds {
		if k.len == n {
			return k.kind
		}
	}
	return ""
}

// Hash computes a hash of a kind of hashKinds.
func Hash(kind string, data []byte) string {
	for _, k := range hashKinds {
		if k.kind == kind {
			h := k.make()
			h.Write(data)
			return hex.EncodeToString(h.Sum(nil))
		}
	}
	return ""
}

// ChecksumError is the error for a source that does not match its hash.
type ChecksumError string

func (e ChecksumError) Error() string { return string(e) }

// Verify checks the data of a source against its source_hash; path is the file that is created from it.
func Verify(c *core.Call, data []byte, path, source, text string) error {
	want, err := WantedSum(c, source, text)
	if err != nil {
		return err
	}
	return want.Check(data, path)
}

// Check checks data against the hash.
func (want Sum) Check(data []byte, path string) error {
	if got := Hash(want.Kind, data); got != want.Hex {
		return ChecksumError(fmt.Sprintf("Specified %s checksum for %s (%s) does not match actual checksum (%s)", want.Kind, path, want.Hex, got))
	}
	return nil
}

// Unverified returns Salt's error for a network source without a hash; more lists other arguments that would
// suffice.
func Unverified(source, more string) error {
	return core.Errorf("Unable to verify upstream hash of source file %s, please set source_hash or set skip_verify%s to True", RedactURL(source), more)
}

// WantedSum reads a source_hash: a hash, kind=hash, or the path or URL of a file of hashes. If such a file has
// several hashes, the line that names source_hash_name is used, otherwise that of the managed file or of the
// source, otherwise the first. Source: Salt documentation, file.managed, source_hash; salt/modules/file.py,
// get_source_sum.
func WantedSum(c *core.Call, source, text string) (Sum, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "/") || Scheme(text) != "" {
		data, _, err := File(c, text)
		if err != nil {
			return Sum{}, err
		}
		if sig, ok := c.Value("source_hash_sig"); ok && py.Truth(sig) {
			if err := CheckSignature(c, data, sig); err != nil {
				return Sum{}, err
			}
		}
		if s, ok := extractHash(string(data), c.Str("source_hash_name", ""), c.Name, source); ok {
			return s, nil
		}
		return Sum{}, badHash(text)
	}
	kind, h, named := strings.Cut(text, "=")
	if !named {
		h = text
		kind = kindOfLength(len(h))
		if _, err := hex.DecodeString(h); err != nil || kind == "" {
			return Sum{}, badHash(text)
		}
		return Sum{kind, strings.ToLower(h)}, nil
	}
	kind, h = strings.ToLower(strings.TrimSpace(kind)), strings.TrimSpace(h)
	var names []string
	for _, k := range hashKinds {
		names = append(names, k.kind)
		if k.kind != kind {
			continue
		}
		if _, err := hex.DecodeString(h); err == nil && len(h) == k.len {
			return Sum{kind, strings.ToLower(h)}, nil
		}
		msg := fmt.Sprintf("Invalid length (%d) for hash type '%s'. Either remove the hash type and simply use '%s' as the source_hash, or change ", len(h), kind, h)
		if other := kindOfLength(len(h)); other != "" {
			return Sum{}, errors.New(msg + "the hash type to '" + other + "'")
		}
		return Sum{}, errors.New(msg + "the hash to one of a supported length")
	}
	return Sum{}, core.Errorf("Invalid hash type '%s'. Supported hash types are: %s. Either remove the hash type and simply use '%s' as the source_hash, or change the hash type to a supported type.",
		kind, strings.Join(names, ", "), h)
}

func badHash(text string) error {
	return core.Errorf("Source hash %s format is invalid. The supported formats are: 1) a hash, 2) an expression in the format <hash_type>=<hash>, "+
		"or 3) either a path to a local file containing hashes, or a URI of a remote hash file. Supported protocols for remote hash files are: "+
		"salt, file, http, https, ftp, swift, s3. The hash may also not be of a valid length, the following are supported hash types and lengths: "+
		"md5 (32), sha1 (40), sha224 (56), sha256 (64), sha384 (96), sha512 (128).", RedactURL(text))
}

// extractHash finds a hash in a file of hashes. Source: Salt, salt/modules/file.py, extract_hash.
func extractHash(text, hashName, fileName, source string) (Sum, bool) {
	const spaces = " \t\n\r\v\f"
	hashRun := regexp.MustCompile(`[0-9A-Za-z]+`)
	var best [4]*Sum // by source_hash_name, name of the file, name of the source, any
	keep := func(i int, s Sum) {
		if best[i] == nil {
			best[i] = &s
		}
	}
	base := path.Base(source)
	if u, err := url.Parse(source); err == nil {
		base = path.Base(u.Path)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		var s Sum
		for _, w := range hashRun.FindAllString(line, -1) {
			if _, err := hex.DecodeString(w); err == nil && len(w) >= 32 && len(w) <= 128 {
				s = Sum{kindOfLength(len(w)), strings.ToLower(w)}
				break
			}
		}
		if s.Kind == "" {
			continue
		}
		// ends reports whether the line ends with a name that stands alone, or begins with one.
		ends := func(name, before, first string) bool {
			if name == "" {
				return false
			}
			if rest, ok := strings.CutSuffix(line, name); ok {
				return rest != "" && strings.ContainsRune(before, rune(rest[len(rest)-1]))
			}
			rest, ok := strings.CutPrefix(line, first)
			return ok && rest != "" && strings.ContainsRune(spaces, rune(rest[0]))
		}
		keep(3, s)
		if ends(hashName, spaces, hashName) {
			keep(0, s)
		}
		if ends(path.Base(fileName), spaces+`\/*`, fileName) {
			keep(1, s)
		}
		if ends(base, spaces+`\/*`, source) {
			keep(2, s)
		}
	}
	for _, s := range best {
		if s != nil {
			return *s, true
		}
	}
	return Sum{}, false
}
