package bundle

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Limits of what is read before a signature is verified, in bytes.
const (
	maxManifest = 1 << 20
	// MaxSignature is the limit of the line of a signature.
	MaxSignature = 16 << 10
)

// Reader reads one bundle.
type Reader struct {
	Manifest Manifest
	// Signer is the key that signed the manifest.
	Signer ssh.PublicKey

	in *bufio.Reader
}

// Anybody trusts every key: for reading a bundle without deploying it.
func Anybody(ssh.PublicKey) error { return nil }

// Open reads the manifest and verifies its signature. trusted returns an error for a key to refuse, before anything is used.
func Open(r io.Reader, trusted func(ssh.PublicKey) error) (*Reader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(in, head); err != nil || string(head) != magic && string(head) != extended {
		return nil, fault.New(fault.Refused, "", "this is not a bundle of a version that this corpus-git reads").WithHint("corpus-git bundle create PROJECT FILE  makes one")
	}
	line, err := ReadLine(in, maxManifest)
	if err != nil {
		return nil, err
	}
	sigLine, err := ReadLine(in, MaxSignature)
	if err != nil {
		return nil, err
	}
	b := &Reader{in: in}
	if b.Signer, err = Verify(signed, line, sigLine); err != nil {
		return nil, err
	}
	if err := trusted(b.Signer); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(line, &b.Manifest); err != nil {
		return nil, fault.New(fault.Refused, "", "the bundle's manifest: %w", err)
	}
	if err := b.Manifest.check(); err != nil {
		return b, err
	}
	if (string(head) == extended) != (len(b.Manifest.Release.Recipes) > 0) {
		return b, fault.New(fault.Refused, "", "the first line of the bundle is that of another one").WithHint("make or send it again")
	}
	return b, nil
}

var errCut = fault.New(fault.Refused, "", "the bundle is cut off").WithHint("make or send it again")

// ReadLine reads a line without its line feed. A truncated line, or one longer than limit bytes, is fault.Refused.
func ReadLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, fault.New(fault.Refused, "", "a line of the bundle is longer than %d bytes", limit)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, errCut
		default:
			return nil, err
		}
	}
}

// Verify checks the line that Sign returned for a text, and returns the key that made it; the caller checks whether that key is trusted. A
// wrong signature is fault.Refused.
func Verify(domain string, text, line []byte) (ssh.PublicKey, error) {
	bad := fault.New(fault.Refused, "", "the signature of the bundle is wrong").WithHint("make or send it again")
	i := bytes.LastIndexByte(line, ' ')
	if i < 0 {
		return nil, bad
	}
	key, _, _, rest, err := ssh.ParseAuthorizedKey(line[:i])
	if err != nil || len(rest) > 0 {
		return nil, bad
	}
	raw, err := base64.StdEncoding.DecodeString(string(line[i+1:]))
	if err != nil {
		return nil, bad
	}
	var sig ssh.Signature
	if err := ssh.Unmarshal(raw, &sig); err != nil {
		return nil, bad
	}
	if err := key.Verify(append([]byte(domain), text...), &sig); err != nil {
		return nil, bad
	}
	return key, nil
}

// Take stores the content of the bundle in the two repositories and those of their submodules and recipes, records the recipes, and points ref to its commit in each of the two. Durable on return.
func (b *Reader) Take(ctx context.Context, repos Repositories, ref string) error {
	r := b.Manifest.Release
	packs := map[project.Repo]Pack{}
	for _, p := range b.Manifest.Packs {
		packs[p.Repo] = p
	}
	list := r.pinned(Tips{}) // in the order of the file
	for _, x := range list {
		p, ok := packs[x.repo]
		if !ok {
			if err := repos(x.repo).TakePack(ctx, nil, x.commit, ref, nil); err != nil {
				return err
			}
			continue
		}
		if err := b.section(p, func(in *section) error { return repos(x.repo).TakePack(ctx, in, x.commit, ref, in.complete) }); err != nil {
			return err
		}
	}
	// After the commits that need them, which keep them.
	for _, x := range list {
		p, ok := packs[x.submodules]
		if !ok {
			continue
		}
		if err := b.section(p, func(in *section) error { return repos(x.repo).TakeSubmodules(ctx, in, p.Commits, in.complete) }); err != nil {
			return err
		}
	}
	return b.takeRecipes(ctx, repos(project.Code), packs)
}

// takeRecipes stores and records the recipes of the bundle.
func (b *Reader) takeRecipes(ctx context.Context, code Repository, packs map[project.Repo]Pack) error {
	r := b.Manifest.Release
	if len(r.Recipes) == 0 {
		return nil
	}
	p, ok := packs[Recipes]
	if !ok {
		return code.TakeRecipes(ctx, nil, r.Code, r.Recipes, nil, nil)
	}
	return b.section(p, func(in *section) error { return code.TakeRecipes(ctx, in, r.Code, r.Recipes, p.Commits, in.complete) })
}

// section has the next pack of the file read. If the file ended early, the error says that, in place of what the reader made of it.
func (b *Reader) section(p Pack, read func(*section) error) error {
	in := &section{in: b.in, left: p.Bytes, sum: sha256.New(), want: p.SHA256}
	err := read(in)
	if err != nil && in.cut {
		return errCut
	}
	return err
}

// Verify reads the rest of a bundle, checks the digests of its packs, and that nothing follows.
func (b *Reader) Verify() error {
	if err := b.Skip(); err != nil {
		return err
	}
	if _, err := b.in.ReadByte(); err == nil {
		return fault.New(fault.Refused, "", "the bundle has something behind its last pack")
	}
	return nil
}

// Skip reads to the end of the last pack, and no further, and checks the digests.
func (b *Reader) Skip() error {
	for _, p := range b.Manifest.Packs {
		if err := b.section(p, (*section).complete); err != nil {
			return err
		}
	}
	return nil
}

// section is one pack of the file.
type section struct {
	in   io.Reader
	left int64
	sum  hash.Hash
	want string
	cut  bool // the file ended in it
}

func (s *section) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.in.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	s.sum.Write(p[:n])
	if errors.Is(err, io.EOF) && s.left > 0 {
		s.cut = true
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// complete reads the rest of the pack, and compares its digest.
func (s *section) complete() error {
	if _, err := io.Copy(io.Discard, s); err != nil {
		if s.cut {
			return errCut
		}
		return err
	}
	if got := hex.EncodeToString(s.sum.Sum(nil)); got != s.want {
		return fault.New(fault.Refused, "", "a pack of the bundle is damaged: its SHA-256 is %s, not %s", got, s.want).WithHint("make or send it again")
	}
	return nil
}
