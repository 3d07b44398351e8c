package state

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
)

// sourceSum is what a source must hash to.
type sourceSum struct{ kind, hex string }

// hashKinds are the hashes that Salt knows, with the lengths of their hexadecimal form, longest first.
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

// hashOf computes a hash of a kind of hashKinds.
func hashOf(kind string, data []byte) string {
	for _, k := range hashKinds {
		if k.kind == kind {
			h := k.make()
			h.Write(data)
			return hex.EncodeToString(h.Sum(nil))
		}
	}
	return ""
}

// checksumError is a source that is not what its hash says.
type checksumError string

func (e checksumError) Error() string { return string(e) }

// verify holds the data of a source against its source_hash; path is the file that is made of it.
func (c *Call) verify(data []byte, path, source, text string) error {
	want, err := c.sourceSum(source, text)
	if err != nil {
		return err
	}
	return want.check(data, path)
}

// check holds data against the hash.
func (want sourceSum) check(data []byte, path string) error {
	if got := hashOf(want.kind, data); got != want.hex {
		return checksumError(fmt.Sprintf("Specified %s checksum for %s (%s) does not match actual checksum (%s)", want.kind, path, want.hex, got))
	}
	return nil
}

// unverified is Salt's word on a source of the network without a hash; more are the arguments that would do, too.
func unverified(source, more string) error {
	return saltSays("Unable to verify upstream hash of source file %s, please set source_hash or set skip_verify%s to True", redactURL(source), more)
}

// sourceSum reads a source_hash: a hash, kind=hash, or the path or URL of a file of hashes. Where such a file has
// several, that of the line that names source_hash_name counts, else the name of the managed file or of the source,
// else the first. Source: Salt documentation, file.managed, source_hash; salt/modules/file.py, get_source_sum.
func (c *Call) sourceSum(source, text string) (sourceSum, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "/") || scheme(text) != "" {
		data, _, err := c.fetch(text)
		if err != nil {
			return sourceSum{}, err
		}
		if sig, ok := c.val("source_hash_sig"); ok && py.Truth(sig) {
			if err := c.checkSignature(data, sig); err != nil {
				return sourceSum{}, err
			}
		}
		if s, ok := extractHash(string(data), c.str("source_hash_name", ""), c.Name, source); ok {
			return s, nil
		}
		return sourceSum{}, badHash(text)
	}
	kind, h, named := strings.Cut(text, "=")
	if !named {
		h = text
		kind = kindOfLength(len(h))
		if _, err := hex.DecodeString(h); err != nil || kind == "" {
			return sourceSum{}, badHash(text)
		}
		return sourceSum{kind, strings.ToLower(h)}, nil
	}
	kind, h = strings.ToLower(strings.TrimSpace(kind)), strings.TrimSpace(h)
	var names []string
	for _, k := range hashKinds {
		names = append(names, k.kind)
		if k.kind != kind {
			continue
		}
		if _, err := hex.DecodeString(h); err == nil && len(h) == k.len {
			return sourceSum{kind, strings.ToLower(h)}, nil
		}
		msg := fmt.Sprintf("Invalid length (%d) for hash type '%s'. Either remove the hash type and simply use '%s' as the source_hash, or change ", len(h), kind, h)
		if other := kindOfLength(len(h)); other != "" {
			return sourceSum{}, errors.New(msg + "the hash type to '" + other + "'")
		}
		return sourceSum{}, errors.New(msg + "the hash to one of a supported length")
	}
	return sourceSum{}, saltSays("Invalid hash type '%s'. Supported hash types are: %s. Either remove the hash type and simply use '%s' as the source_hash, or change the hash type to a supported type.",
		kind, strings.Join(names, ", "), h)
}

func badHash(text string) error {
	return saltSays("Source hash %s format is invalid. The supported formats are: 1) a hash, 2) an expression in the format <hash_type>=<hash>, "+
		"or 3) either a path to a local file containing hashes, or a URI of a remote hash file. Supported protocols for remote hash files are: "+
		"salt, file, http, https, ftp, swift, s3. The hash may also not be of a valid length, the following are supported hash types and lengths: "+
		"md5 (32), sha1 (40), sha224 (56), sha256 (64), sha384 (96), sha512 (128).", redactURL(text))
}

// extractHash finds a hash in a file of hashes. Source: Salt, salt/modules/file.py, extract_hash.
func extractHash(text, hashName, fileName, source string) (sourceSum, bool) {
	const spaces = " \t\n\r\v\f"
	hashRun := regexp.MustCompile(`[0-9A-Za-z]+`)
	var best [4]*sourceSum // by source_hash_name, name of the file, name of the source, any
	keep := func(i int, s sourceSum) {
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
		var s sourceSum
		for _, w := range hashRun.FindAllString(line, -1) {
			if _, err := hex.DecodeString(w); err == nil && len(w) >= 32 && len(w) <= 128 {
				s = sourceSum{kindOfLength(len(w)), strings.ToLower(w)}
				break
			}
		}
		if s.kind == "" {
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
	return sourceSum{}, false
}
